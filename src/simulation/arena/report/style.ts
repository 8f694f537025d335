/** The report's style, light and dark as the reader's system says. */

/** Colours of the policies in their order, light and dark (after Okabe and Ito: told apart by most eyes). */
const policyColours = [
  ['#0072b2', '#56b4e9'],
  ['#009e73', '#2fd6a3'],
  ['#d55e00', '#ff8a3d'],
  ['#8a6d00', '#f0e442'],
  ['#cc79a7', '#e8a3c9'],
  ['#6a3d9a', '#b49ae0'],
  ['#7f5539', '#c9a07c'],
  ['#444444', '#d0d0d0'],
] as const

const policyRules = (shade: 0 | 1): string =>
  policyColours.map((pair, index) => `--policy-${index}:${pair[shade]}`).join(';')

const policyClasses = policyColours
  .map(
    (_, index) =>
      `.line.policy-${index}{stroke:var(--policy-${index})}.key.policy-${index}{background:var(--policy-${index})}`,
  )
  .join('')

export const style = `:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--grid:#e4e8ec;--used:#0072b2;--ceiling:#d55e00;--wait:#e0a100;--lost:#c62828;--aux:#6f8f3f;${policyRules(0)}}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#a0a9b2;--paper:#14171a;--grid:#2a3036;--used:#56b4e9;--ceiling:#ff8a3d;--wait:#f0c24a;--lost:#ff6b6b;--aux:#a6c96a;${policyRules(1)}}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1500px;margin:0 auto;padding:24px}h1{margin:0 0 4px;font-size:26px}h2{font-size:18px;margin:28px 0 8px}
p{margin:4px 0;max-width:80ch}.facts,figcaption,.tick{color:var(--soft)}
section{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:8px 24px}section>h2,section>.legend{grid-column:1/-1}
figure{margin:0;min-width:0}svg{width:100%;height:auto;display:block}figcaption{font-size:13px}
.wide{overflow-x:auto;margin:16px 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13.5px}
th,td{padding:4px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}th:first-child{text-align:left}
.tick{font-size:11px;fill:var(--soft)}.grid{stroke:var(--grid);fill:none}.line{fill:none;stroke-width:1.6}.area{opacity:.45}
.area.used,.key.used{fill:var(--used);background:var(--used)}.line.ceiling{stroke:var(--ceiling)}.key.ceiling{background:var(--ceiling)}
.bar.waiting{fill:var(--wait)}.key.waiting{background:var(--wait)}.bar.primary{fill:var(--used)}.key.primary{background:var(--used)}
.bar.lost{fill:var(--lost)}.key.lost{background:var(--lost)}.line.waits{stroke:var(--wait)}.key.waits{background:var(--wait)}
.area.flying{fill:var(--aux)}.key.flying{background:var(--aux)}
.key{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 5px 0 0}span{white-space:nowrap}span{margin-right:12px}
${policyClasses}`
