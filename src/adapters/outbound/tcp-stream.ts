// A TCP connection as a stream that is no Socket, for TLS on top of it.
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import { AttemptFailed } from './attempt.ts';
import { BYTES_PER_READ, type ReadTurns, type Source } from './read-turns.ts';

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

/**
 * Passes on what arrives, in turns with the other connections. Does not read from the kernel while something waits.
 *
 * Native `tls.connect` of Bun has one queue for all handshakes: five per turn of the event loop, the newest first. At 64
 * calls at once 3 to 4 % of 1,500 calls timed out after 3 s (2 % with 500 hanging targets, 8 % with a busy event loop as
 * well), and 25 % at 200 at once. With TLS over this stream 0 % timed out, for about 0.1 ms more CPU time per call.
 */
export class TcpStream extends Duplex implements Source {
  readonly #socket: Socket;
  readonly #turns: ReadTurns;
  readonly #isOver: () => boolean;
  /** What has arrived and is not passed on. */
  readonly #arrived: Buffer[] = [];
  /** What follows it: the end of the connection. */
  readonly #following: (() => void)[] = [];
  #isWaiting = false;
  #isHeld = false;
  #isStopped = false;
  #reads = 0;
  #collecting: NodeJS.Timeout | undefined;
  #received = 0;
  #passedOn = 0;
  #hasEnded = false;

  /** `isOver`: whether the time limit of the attempt is over. Then nothing more is passed on. */
  constructor(socket: Socket, turns: ReadTurns, isOver: () => boolean) {
    super({ emitClose: false });
    this.#isOver = isOver;
    this.#socket = socket;
    this.#turns = turns;
    turns.open(this);
    socket.once('connect', () => {
      if (turns.isFull) this.hold();
    });
    socket.on('data', (chunk: Buffer) => this.#arrive(chunk));
    socket.on('end', () => this.afterArrived(() => this.#end()));
    socket.on('close', (...values: readonly unknown[]) =>
      this.afterArrived(() => this.emit('close', ...values)),
    );
  }

  /** Bytes that have arrived. */
  get received(): number {
    return this.#received;
  }
  /** Of these, the bytes that TLS has. */
  get passedOn(): number {
    return this.#passedOn;
  }
  /** The peer has closed the connection, and TLS was informed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Runs `action` in a later turn of the event loop, after everything that has arrived was passed on; at once if the stream
   * is stopped.
   */
  afterArrived(action: () => void): void {
    this.#following.push(action);
    if (this.#isStopped) for (const next of this.#following.splice(0)) next();
    else if (!this.#isWaiting) this.#follow();
  }

  /** From now on nothing that arrives is passed on. The connection has to be closed. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#turns.close(this);
    this.#turns.count(this.#passedOn - this.#received);
    this.#arrived.length = 0;
    clearTimeout(this.#collecting);
  }

  readSome(): number {
    const [next] = this.#arrived;
    if (next !== undefined && this.#isOver()) {
      this.stop();
      this.#socket.destroy(new AttemptFailed('timeout'));
      return 0;
    }
    if (next === undefined) {
      this.#readOn();
      return 0;
    }
    const piece = next.length <= BYTES_PER_READ ? next : next.subarray(0, BYTES_PER_READ);
    if (piece === next) this.#arrived.shift();
    else this.#arrived[0] = next.subarray(BYTES_PER_READ);
    this.#passedOn += piece.length;
    this.#turns.count(-piece.length);
    this.emit('data', piece);
    return READ_COST + piece.length;
  }

  #arrive(chunk: Buffer): void {
    if (this.#isStopped) return;
    const allowed = chunk.subarray(0, RECEIVED_BYTES_MAX - this.#received);
    this.#received += allowed.length;
    this.#reads += 1;
    this.#arrived.push(allowed);
    this.#turns.count(allowed.length);
    if (allowed.length < chunk.length)
      this.#following.push(() => this.#socket.destroy(new AttemptFailed('protocol_error')));
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

  #end(): void {
    this.#hasEnded = true;
    this.emit('end');
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

  override _write(chunk: Uint8Array, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, done);
  }
  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(done);
  }
  override resume(): this {
    if (!this.#isHeld) this.#socket.resume();
    return this;
  }
  override pause(): this {
    this.#socket.pause();
    return this;
  }
  override destroy(): this {
    this.stop();
    this.#socket.destroy();
    return this;
  }
}

/**
 * A connection that reads nothing ahead while it is held. Bun continues to read behind `pause`, until the stream's buffer is
 * full: a block of up to 512 KiB for each connection, 100 MB for 200 hostile targets.
 */
export function connectTcp(to: { readonly host: string; readonly port: number }): Socket {
  const options = { ...to, highWaterMark: 0 };
  return connect(options);
}

/** Pauses the native socket of Bun as well; `resume` resumes it. Other runtimes have no such function, and need none. */
function pauseReading(socket: Socket): void {
  const native: unknown = Reflect.get(socket, '_handle');
  if (typeof native !== 'object' || native === null || !('pause' in native)) return;
  if (typeof native.pause === 'function') native.pause();
}
