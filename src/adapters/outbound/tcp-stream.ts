// A TCP connection as a stream that is no Socket, for TLS on top of it.
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { Intake } from './intake.ts';
import type { ReadTurns } from './read-turns.ts';

/**
 * Native `tls.connect` of Bun has one queue for all handshakes: five per turn of the event loop, the newest first. At 64
 * calls at once 3 to 4 % of 1,500 calls timed out after 3 s (2 % with 500 hanging targets, 8 % with a busy event loop as
 * well), and 25 % at 200 at once. With TLS over this stream 0 % timed out, for about 0.1 ms more CPU time per call.
 */
export class TcpStream extends Duplex {
  readonly #socket: Socket;
  /** What arrives. After its `stop` the connection has to be closed. */
  readonly intake: Intake;
  /** The peer has closed the connection, and TLS was informed. */
  hasEnded = false;

  /** `isOver`: as of `Intake`. */
  constructor(socket: Socket, turns: ReadTurns, isOver: () => boolean) {
    super({ emitClose: false });
    this.#socket = socket;
    this.intake = new Intake(socket, turns, isOver, (piece) => this.emit('data', piece));
    socket.on('end', () =>
      this.intake.afterArrived(() => {
        this.hasEnded = true;
        this.emit('end');
      }),
    );
    socket.on('close', (...values: readonly unknown[]) =>
      this.intake.afterArrived(() => this.emit('close', ...values)),
    );
  }

  override _write(chunk: Uint8Array, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, done);
  }
  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(done);
  }
  override resume(): this {
    this.intake.resume();
    return this;
  }
  override pause(): this {
    this.#socket.pause();
    return this;
  }
  override destroy(): this {
    this.intake.stop();
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
