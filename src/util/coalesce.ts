interface Shared<Result, News> {
  readonly work: Promise<Result>;
  readonly controller: AbortController;
  /** All that was told so far, for those who join later. */
  readonly told: News[];
  readonly listeners: Set<(news: News) => void>;
  waiting: number;
}

/** Starts a piece of work that ends with its signal and tells its news on the way. */
type Start<Result, News> = (signal: AbortSignal, tell: (news: News) => void) => Promise<Result>;

/** Lets everybody who asks for the same thing at the same time share one piece of work. */
export class Coalescer<Result, News = never> {
  readonly #shared = new Map<string, Shared<Result, News>>();

  /**
   * Joins the work for the key, or starts it. Null when the caller's signal aborts before it is done;
   * the work's own signal aborts only when nobody waits for it any more.
   *
   * @param listen hears the news of the work, from its beginning, until this returns
   */
  async join(
    key: string,
    signal: AbortSignal | undefined,
    start: Start<Result, News>,
    listen?: (news: News) => void,
  ): Promise<Result | null> {
    if (signal?.aborted) return null;
    const shared = this.#shared.get(key) ?? this.#start(key, start);
    const { promise: left, resolve: leave } = Promise.withResolvers<null>();
    const abort = () => leave(null);
    signal?.addEventListener("abort", abort);
    shared.waiting += 1;
    if (listen !== undefined) {
      for (const news of shared.told) listen(news);
      shared.listeners.add(listen);
    }
    try {
      return await Promise.race([shared.work, left]);
    } finally {
      signal?.removeEventListener("abort", abort);
      if (listen !== undefined) shared.listeners.delete(listen);
      shared.waiting -= 1;
      if (shared.waiting === 0) {
        this.#shared.delete(key);
        // Only where somebody left is there work to end.
        if (signal?.aborted) shared.controller.abort();
      }
    }
  }

  #start(key: string, start: Start<Result, News>): Shared<Result, News> {
    const controller = new AbortController();
    const told: News[] = [];
    const listeners = new Set<(news: News) => void>();
    const tell = (news: News) => {
      told.push(news);
      for (const listener of listeners) listener(news);
    };
    const work = start(controller.signal, tell);
    const shared = { work, controller, told, listeners, waiting: 0 };
    this.#shared.set(key, shared);
    return shared;
  }
}
