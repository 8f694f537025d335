/** The report's style, light or dark as the reader's system prefers. */
export const style = `:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--grid:#e4e8ec;--ours:#eef5fb}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#a0a9b2;--paper:#14171a;--grid:#2a3036;--ours:#17242f}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1400px;margin:0 auto;padding:24px}h1{margin:0 0 4px;font-size:26px}h2{font-size:18px;margin:28px 0 8px}
p{margin:4px 0;max-width:80ch}.facts,figcaption{color:var(--soft)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:8px 24px}
figure{margin:0;min-width:0}figcaption{font-size:13px}summary{cursor:pointer}
.wide{overflow-x:auto;margin:12px 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:12.5px;width:100%}
th,td{padding:4px 6px;text-align:right;border-bottom:1px solid var(--grid)}thead th{vertical-align:bottom;line-height:1.25}
td,tbody th{white-space:nowrap}th:first-child{text-align:left}tr.ours{background:var(--ours)}
.key{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 5px 0 0}
.story{margin:4px 0}.story pre{white-space:pre-wrap;margin:4px 0 8px 16px;font-size:12.5px}.story:target>summary{font-weight:700}
.u-legend{font-size:12px;text-align:left}`
