/** `npm run dev`: a gateway that starts again when its sources change, and its page, built again when the page's change. */
import { spawn } from 'node:child_process'

const commands: ReadonlyArray<ReadonlyArray<string>> = [
  // The gateway serves the page as it was last built: reload it in the browser.
  ['vite', 'build', 'inspector/page', '--watch'],
  ['tsx', 'watch', '--clear-screen=false', 'src/cli/main.ts', 'serve', ...process.argv.slice(2)],
]

const children = commands.map(([command, ...args]) => spawn(command as string, args, { stdio: 'inherit' }))

const stop = (): void => {
  for (const child of children) child.kill('SIGTERM')
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop)
// One without the other is no development server.
for (const child of children) {
  child.on('exit', (code) => {
    process.exitCode ??= code ?? 1
    stop()
  })
}
