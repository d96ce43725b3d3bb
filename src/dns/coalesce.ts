interface Shared<Result> {
  readonly work: Promise<Result>;
  readonly controller: AbortController;
  waiting: number;
}

/** Lets everybody who asks for the same thing at the same time share one piece of work. */
export class Coalescer<Result> {
  readonly #shared = new Map<string, Shared<Result>>();

  /**
   * Joins the work for the key, or starts it. Null when the caller's signal aborts before it is done;
   * the work's own signal aborts only when nobody waits for it any more.
   */
  async join(
    key: string,
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | null> {
    if (signal?.aborted) return null;
    const shared = this.#shared.get(key) ?? this.#start(key, start);
    const { promise: left, resolve: leave } = Promise.withResolvers<null>();
    const abort = () => leave(null);
    signal?.addEventListener("abort", abort);
    shared.waiting += 1;
    try {
      return await Promise.race([shared.work, left]);
    } finally {
      signal?.removeEventListener("abort", abort);
      shared.waiting -= 1;
      if (shared.waiting === 0) {
        this.#shared.delete(key);
        // Only where somebody left is there work to end.
        if (signal?.aborted) shared.controller.abort();
      }
    }
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<Result>): Shared<Result> {
    const controller = new AbortController();
    const shared = { work: start(controller.signal), controller, waiting: 0 };
    this.#shared.set(key, shared);
    return shared;
  }
}
