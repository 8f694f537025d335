import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** The page is built into the folder where both servers look for it, from the sources and from the build. */
export default defineConfig({
  root: import.meta.dirname,
  // Relative addresses: the page is mounted under a prefix that is unknown at build time.
  base: './',
  plugins: [react()],
  build: {
    outDir: '../../dist/inspector/page',
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1_000,
    modulePreload: { polyfill: false },
  },
})
