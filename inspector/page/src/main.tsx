import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App.tsx'
import { Inspection } from './net/inspection.ts'
import './styles/base.css'
import './styles/frame.css'
import './styles/time.css'
import './styles/marks.css'
import './styles/scopes.css'
import './styles/statechart.css'
import './styles/lanes.css'
import './styles/decisions.css'
import './styles/actors.css'

const inspection = new Inspection()
inspection.start()

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App inspection={inspection} />
  </StrictMode>,
)
