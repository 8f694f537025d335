import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** The page goes where both the sources' server and the built one look for it. */
export default defineConfig({
  root: import.meta.dirname,
  // Relative addresses: it is mounted under a prefix that is not known here.
  base: './',
  resolve: { conditions: ['source', 'module', 'browser', 'production', 'default'] },
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
