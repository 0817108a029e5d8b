// What arrives on a TCP connection, passed on in turns with the other connections. Nothing is read from the kernel while
// something waits.
import type { Socket } from 'node:net';
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import { invalidResponse, timedOut } from './attempt.ts';
import { BYTES_PER_READ, type ReadSource, type ReadTurns } from './read-turns.ts';

/**
 * A body of 64 KiB in chunks of one byte has 384 KiB. Beyond this a response is mostly framing, which costs this process
 * more than the target.
 */
export const RECEIVED_BYTES_MAX = 512 * 1024;
/** What a read costs whatever its length, in bytes of small records. */
const READ_COST = 512;
/** After these reads, what arrives is collected, so that a response in tiny segments wakes the process 40 times a second. */
const EAGER_READS = 32;
const COLLECT_MS = 25;

export class Intake implements ReadSource {
  readonly #socket: Socket;
  readonly #turns: ReadTurns;
  readonly #isOver: () => boolean;
  readonly #passOn: (piece: Buffer) => void;
  /** What has arrived and is not passed on. */
  readonly #arrived: Buffer[] = [];
  /** What follows it: the end of the connection. */
  readonly #following: (() => void)[] = [];
  #isWaiting = false;
  #isHeld = false;
  #isStopped = false;
  #reads = 0;
  #collecting: NodeJS.Timeout | undefined;
  /** Bytes that have arrived. */
  received = 0;
  /** Of these, the bytes that were passed on. */
  passedOn = 0;

  /** `isOver`: whether the time limit of the attempt is over. Then nothing more is passed on. */
  constructor(socket: Socket, turns: ReadTurns, isOver: () => boolean, passOn: (piece: Buffer) => void) {
    this.#socket = socket;
    this.#turns = turns;
    this.#isOver = isOver;
    this.#passOn = passOn;
    turns.open(this);
    socket.once('connect', () => {
      if (turns.isFull) this.hold();
    });
    socket.on('data', (chunk: Buffer) => this.#arrive(chunk));
  }

  /**
   * Runs `action` in a later turn of the event loop, after everything that has arrived was passed on; at once if this is
   * stopped.
   */
  afterArrived(action: () => void): void {
    this.#following.push(action);
    if (this.#isStopped) for (const next of this.#following.splice(0)) next();
    else if (!this.#isWaiting) this.#follow();
  }

  /** From now on nothing that arrives is passed on. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#turns.close(this);
    this.#turns.count(this.passedOn - this.received);
    this.#arrived.length = 0;
    clearTimeout(this.#collecting);
  }

  readSome(): number {
    const [next] = this.#arrived;
    if (next === undefined) {
      this.#readOn();
      return 0;
    }
    if (this.#isOver()) {
      this.stop();
      this.#socket.destroy(timedOut());
      return 0;
    }
    const piece = next.subarray(0, BYTES_PER_READ);
    if (piece.length === next.length) this.#arrived.shift();
    else this.#arrived[0] = next.subarray(BYTES_PER_READ);
    this.passedOn += piece.length;
    this.#turns.count(-piece.length);
    this.#passOn(piece);
    return READ_COST + piece.length;
  }

  #arrive(chunk: Buffer): void {
    if (this.#isStopped) return;
    const allowed = chunk.subarray(0, RECEIVED_BYTES_MAX - this.received);
    this.received += allowed.length;
    this.#reads += 1;
    this.#arrived.push(allowed);
    this.#turns.count(allowed.length);
    if (allowed.length < chunk.length) this.#following.push(() => this.#socket.destroy(invalidResponse()));
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#turns.add(this);
    if (this.#isWaiting) this.hold();
  }

  /** Everything that has arrived was passed on. */
  #readOn(): void {
    this.#isWaiting = false;
    if (this.#following.length > 0) this.#follow();
    else if (this.#reads <= EAGER_READS) this.release();
    else if (!this.#isStopped) {
      this.hold();
      this.#collecting = setTimeout(() => this.release(), COLLECT_MS);
    }
  }

  /** In a later turn: then TLS has emitted its own end if the last bytes contain one. */
  #follow(): void {
    for (const action of this.#following.splice(0)) setImmediate(action);
  }

  hold(): void {
    this.#isHeld = true;
    this.#socket.pause();
    pauseReading(this.#socket);
  }

  release(): void {
    if (!this.#isHeld || this.#isStopped || this.#isWaiting || this.#turns.isFull) return;
    this.#isHeld = false;
    this.#socket.resume();
  }

  /** What TLS wants; `hold` prevails. */
  resume(): void {
    if (!this.#isHeld) this.#socket.resume();
  }
}

/** Pauses the native socket of Bun as well; `resume` resumes it. Other runtimes have no such function, and need none. */
function pauseReading(socket: Socket): void {
  const native: unknown = Reflect.get(socket, '_handle');
  if (typeof native !== 'object' || native === null || !('pause' in native)) return;
  if (typeof native.pause === 'function') native.pause();
}
