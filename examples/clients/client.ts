/** What every example of a client offers: one prompt asked in each way that its SDK knows. */
export interface ExampleClient {
  readonly plain: (prompt: string, options?: AskOptions) => Promise<string>
  /** Pieces of the answer as they come. */
  readonly stream: (prompt: string, options?: AskOptions) => AsyncIterable<string>
  /** Lets the model ask for the weather until it has its answer. */
  readonly toolLoop: (prompt: string) => Promise<string>
  /** Whether this is the error that users of the SDK catch when the provider has had too much. */
  readonly isRateLimit: (error: unknown) => boolean
}

export interface AskOptions {
  readonly signal?: AbortSignal
}

export const weather = (city: string): string => `sunny in ${city}`
