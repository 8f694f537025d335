/** Certificates that a gateway of a test shows, made by openssl. */
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'

/** Writes `cert.pem` and `key.pem` into the folder: of `localhost`, under that common name. */
export const certificate = (folder: string, name: string): void => {
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost']
  const files = ['-keyout', join(folder, 'next.key'), '-out', join(folder, 'next.pem')]
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  execFileSync('openssl', [...made, ...subject, ...files], { stdio: 'ignore' })
  renameSync(join(folder, 'next.key'), join(folder, 'key.pem'))
  renameSync(join(folder, 'next.pem'), join(folder, 'cert.pem'))
}

export const hasOpenssl = ((): boolean => {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()
