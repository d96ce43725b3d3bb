import { C, errnoName, loadLibc, SystemError } from "../platform/libc.ts";
import { EFD_NONBLOCK_CLOEXEC } from "../platform/linux.ts";
import type { ReceivedPacket, SocketListener } from "./socket.ts";

/** What the Worker is told when it starts. */
export interface ReceiverTask {
  /** The socket to read from. */
  readonly socketFd: number;
  /** An eventfd: once it can be read, the Worker ends. */
  readonly wakeFd: number;
  /** How many packets the main thread has not taken yet; shared by both. */
  readonly queued: Int32Array<SharedArrayBuffer>;
  /** How often the Worker has gone round. */
  readonly beats: Int32Array<SharedArrayBuffer>;
}

/** What the Worker says: packets as they come, and at last that it uses the file descriptors no more. */
export type ReceiverMessage = readonly ReceivedPacket[] | "ended";

const SYMBOLS = {
  eventfd: { args: [C.uint, C.int], returns: C.int },
  eventfd_write: { args: [C.int, C.size], returns: C.int },
  close: { args: [C.int], returns: C.int },
} as const;

/** The thread that waits for packets, so that reading them does not wait for the event loop. */
export class Receiver {
  readonly #libc = loadLibc(SYMBOLS);
  readonly #wakeFd: number;
  readonly #worker: Worker;
  readonly #queued = new Int32Array(new SharedArrayBuffer(4));
  readonly #beats = new Int32Array(new SharedArrayBuffer(4));
  readonly #ended = Promise.withResolvers<void>();
  #listener: SocketListener | null;

  /** @throws SystemError where no eventfd can be had */
  constructor(socketFd: number, listener: SocketListener) {
    this.#listener = listener;
    this.#wakeFd = this.#libc.eventfd(0, EFD_NONBLOCK_CLOEXEC);
    if (this.#wakeFd < 0) throw new SystemError("eventfd", errnoName(this.#libc.errno()));
    this.#worker = new Worker(new URL("./receiver-worker.ts", import.meta.url).href);
    this.#worker.onmessage = (event: MessageEvent<ReceiverMessage>) => this.#take(event.data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(event.message);
    };
    this.#worker.addEventListener("close", () => this.#fail("its thread has ended"));
    const task: ReceiverTask = {
      socketFd,
      wakeFd: this.#wakeFd,
      queued: this.#queued,
      beats: this.#beats,
    };
    this.#worker.postMessage(task);
    this.#worker.unref();
  }

  /** How often the thread has gone round, with or without packets; it overflows. */
  get beats(): number {
    return Atomics.load(this.#beats, 0);
  }

  /** Resolves once the thread has ended and both file descriptors are out of use; nothing is delivered from the call on. */
  async stop(): Promise<void> {
    this.#listener = null;
    this.#worker.ref();
    this.#libc.eventfd_write(this.#wakeFd, 1);
    await this.#ended.promise;
    this.#worker.terminate();
    this.#libc.close(this.#wakeFd);
  }

  #take(message: ReceiverMessage): void {
    if (message === "ended") {
      this.#ended.resolve();
    } else {
      Atomics.sub(this.#queued, 0, message.length);
      this.#listener?.packets(message);
    }
  }

  #fail(reason: string): void {
    this.#ended.resolve();
    this.#listener?.failed(new Error(`the ICMPv6 receiver has failed: ${reason}`));
    this.#listener = null;
  }
}
