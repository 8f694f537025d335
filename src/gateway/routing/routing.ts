/** The three tables of a gateway: routes, classes and scopes. */
import { type Classifier, makeClassifier } from './classify.ts'
import { defaultClassify, defaultScopes } from './presets.ts'
import type { RouteRow } from './route-rows.ts'
import { makeRouteTable, type RouteTable } from './route-table.ts'
import type { ClassifyInput, RouteInput, ScopesInput } from './schema.ts'
import { makeScopeNamer, type ScopeNamer } from './scope-names.ts'

export interface Routing {
  readonly routes: RouteTable
  readonly classifier: Classifier
  readonly namer: ScopeNamer
}

export interface RoutingInput {
  readonly routes?: ReadonlyArray<RouteInput>
  readonly classify?: ClassifyInput
  readonly scopes?: ScopesInput
}

/** Throws `InvalidInput` that names the row and its field. */
export const makeRouting = ({
  routes = [],
  classify = defaultClassify,
  scopes = defaultScopes,
}: RoutingInput = {}): Routing => ({
  routes: makeRouteTable(routes.map(rowOf)),
  classifier: makeClassifier(classify),
  namer: makeScopeNamer(scopes),
})

const rowOf = ({ path, kind, model, estimate }: RouteInput): RouteRow => ({
  path,
  wire: 'own',
  kind,
  model: model ?? (path.includes('{model}') ? ['{model}'] : ['/model', '/models/0']),
  estimate: estimate ?? 'text',
})
