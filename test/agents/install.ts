/** The agents from npm, outside the project's dependencies: they are large, and few changes need them. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The versions that were seen to work. */
const packages = ['@anthropic-ai/claude-code@2.1.197', '@openai/codex@0.171.0']
const installTimeoutMs = 10 * 60_000

/** The folder of their commands; null when npm cannot install them. `RIGHTOFWAY_AGENTS` names a folder that has them. */
export const installAgents = (): string | null => {
  const folder = process.env['RIGHTOFWAY_AGENTS'] ?? join(tmpdir(), 'rightofway-agents')
  const commands = join(folder, 'node_modules', '.bin')
  if (['claude', 'codex'].every((name) => existsSync(join(commands, name)))) return commands
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', ...packages], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: installTimeoutMs,
  })
  return status === 0 ? commands : null
}
