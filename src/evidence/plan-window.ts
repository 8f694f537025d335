/**
 * Allowances of plans: so much use in five hours, in a week, in a billing cycle. They are no rates. Once one
 * is used up, nothing of the account goes until its window ends, so the reading is an exhausted quota.
 * A sentence must name the window, the allowance and that it is used up.
 */
import type { Finding } from './answer.ts'

const count = '(?:[2-9]|[1-9]\\d{1,2}|two|three|four|five|six|eight|ten|twelve)'
/** Longer than the minute and the hour of a rate: hours in the plural, a session, weeks, months, a cycle. */
const longWindow = `(?:${count}[-\\s]?(?:hours?|hrs?|h)|sessions?|(?:\\d{1,3}[-\\s]?)?weeks?|weekly|(?:\\d{1,2}[-\\s]?)?months?|monthly|(?:billing|subscription|plan) (?:cycle|period|month))`
const dayWindow = `(?:daily|per[- ]day|day's|days?|today'?s?|24[-\\s]?(?:hours?|h))`
const anyWindow = `(?:${longWindow}|${dayWindow})`
const used =
  '(?:reach(?:ed|ing)?|exceed(?:ed|s|ing)?|hit|exhausted|used up|used all|us(?:ed|ing) 100 ?%|deplet(?:ed)?|consumed|ran out|run out|out of|maxed out|over)'
const allowance =
  '(?:(?:usage|session|plan|message|prompt|subscription|included|allocated|free|coding|token plan|coding plan|account|request|token)\\s){0,4}(?:limits?|quotas?|allowances?|allocations?|caps?|usage)'
const gap = '[^.!;\\n]{0,48}?'

const english = [
  // "reached your 5-hour usage limit", "used up your daily free allocation".
  new RegExp(`\\b${used}\\b${gap}\\b${longWindow}\\b[^.!;\\n]{0,32}?\\b${allowance}\\b`, 'i'),
  // "week allocated quota exceeded", "5-hour usage limit reached", "weekly/monthly limit exhausted".
  new RegExp(`\\b${longWindow}\\b[^.!;\\n]{0,16}?\\b${allowance}\\b${gap}\\b${used}\\b`, 'i'),
  // "usage limit reached for 5 hour", "reached your usage limit for this billing cycle".
  new RegExp(
    `\\b(?:usage|plan|session|message|prompt) (?:limits?|quota|allowance)\\b${gap}\\b${anyWindow}\\b`,
    'i',
  ),
  // "reached your session usage limit", "hit your usage limit".
  new RegExp(`\\b${used}\\b${gap}\\b(?:usage|plan|session) (?:limits?|quota|allowance)\\b`, 'i'),
  /\b(?:usage|plan|session) (?:limits?|quota|allowance) (?:has been |is |was )?(?:reached|exceeded|hit|exhausted|used up)\b/i,
]

/** A day's allowance, unless it is counted in tokens or requests: those are dimensions of their own. */
const ofTheDay = [
  new RegExp(
    `\\b${used}\\b${gap}\\b${dayWindow}\\s(?:free |included |usage |plan |allocated ){0,3}(?:limits?|quota|allowance|allocation|credits?)\\b`,
    'i',
  ),
  new RegExp(
    `\\b(?:daily|day) (?:free |included |usage |plan |allocated ){0,3}(?:limits?|quota|allowance|allocation)\\b${gap}\\b${used}\\b`,
    'i',
  ),
]
const counted = /\b(?:tokens?|requests?|queries|query|calls?|[RT]PD)\b/i

const chineseWindow =
  '(?:[\\d一二三五六十]{1,3}\\s?(?:个|個)?\\s?(?:小时|小時)|(?:每|本|当|當|今)\\s?(?:日|天|周|週|星期|月|期)|(?:周|週|月|日)(?:度|用量|使用|额度|額度|限额|限額)|会话|會話|(?:计费|計費|账单|帳單|订阅|訂閱)周期|(?:编程|編程|编码|订阅|訂閱)?套餐)'
const chineseAllowance = '(?:用量|使用量|额度|額度|限额|限額|配额|配額|使用上限|上限|使用次数|使用限制)'
const chineseUsed = '(?:已?达到?|已?達到?|已?触发|超出|超过|超過|用完|用尽|用盡|耗尽|耗盡|已满|不足|已使用)'
const chinese = [
  new RegExp(`${chineseUsed}[^。；\\n]{0,24}${chineseWindow}[^。；\\n]{0,12}${chineseAllowance}`),
  new RegExp(`${chineseWindow}[^。；\\n]{0,16}${chineseAllowance}[^。；\\n]{0,12}${chineseUsed}`),
  new RegExp(`${chineseWindow}[^。；\\n]{0,12}${chineseUsed}[^。；\\n]{0,12}${chineseAllowance}`),
]
const others = [
  // Japanese and Korean put the verb last.
  /(?:\d{1,3}\s?時間|セッション|週間|月間|今週|今月|1日)[^。\n]{0,24}(?:上限|制限|使用量|クォータ)[^。\n]{0,16}(?:達|超|使い切)/,
  /(?:\d{1,3}\s?시간|세션|주간|월간|일일|이번 (?:주|달))[^.\n]{0,24}(?:한도|할당량|사용량)[^.\n]{0,16}(?:초과|도달|소진)/,
]

const sentences: ReadonlyArray<RegExp> = [...english, ...chinese, ...others]
/** A rate says its noun and a short window, or says that it is a rate. */
const shortRate =
  /\b(?:tokens?|requests?|calls?|queries)\b[^.;\n]{0,24}\b(?:per|\/|an?|each)[\s_-]{0,2}(?:second|minute|min|hour)\b|\bper[- ](?:second|minute|hour)\b/i
/** One month's bill: nothing tells when it begins again. */
const cycle = /\bbilling (?:cycle|period)\b|(?:计费|計費|账单|帳單)周期/i
/** What a trial grants once does not come back. */
const trial = /\b(?:free )?trial (?:quota|credits?|allowance)\b|试用(?:额度|配额)/i

/** The allowance is one model's and not the account's. */
const oneModel =
  /\b(?:on|for) (?:this|the) \[?[\w.-]{0,60}\]? ?model\b|\blimit (?:reached )?for [`'"]?[a-z][\w./:-]{0,60}\d|\b(?:opus|sonnet|haiku|fable|model)(?:[-\s]only)? (?:weekly |usage )?(?:limit|quota)\b/i

/** The finding for a used-up allowance of a plan; null when the text speaks of none. */
export const readPlanWindow = (text: string): Finding | null => {
  const says = (patterns: ReadonlyArray<RegExp>): boolean => patterns.some((pattern) => pattern.test(text))
  if (shortRate.test(text) || !(says(sentences) || (says(ofTheDay) && !counted.test(text)))) return null
  return {
    kind: 'quota-exhausted',
    scope: oneModel.test(text) ? 'model' : 'credential',
    retryable: !cycle.test(text) && !trial.test(text),
  }
}
