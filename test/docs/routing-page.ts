/** Writes the rows of the route table into docs/routing.md: `node test/docs/routing-page.ts`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { routeKinds, routeRows } from '../../src/gateway/routing/route-rows.ts'

export const page = new URL('../../docs/routing.md', import.meta.url)

/** The page with the rows as they are now. */
export const withRows = (text: string): string => {
  const wires = [...new Set(routeRows.map(({ wire }) => wire))]
  const cell = (wire: string, kind: string): string =>
    routeRows
      .filter((row) => row.wire === wire && row.kind === kind)
      .map(({ path }) => `\`${path}\``)
      .join(' ')
  const lines = [
    `| wire | ${routeKinds.join(' | ')} |`,
    '| --- | --- | --- | --- |',
    ...wires.map((wire) => `| ${wire} | ${routeKinds.map((kind) => cell(wire, kind)).join(' | ')} |`),
  ]
  return text.replace(
    /<!-- rows -->\n[\s\S]*?<!-- end of rows -->/,
    () => `<!-- rows -->\n${lines.join('\n')}\n<!-- end of rows -->`,
  )
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeFileSync(page, withRows(readFileSync(page, 'utf8')))
