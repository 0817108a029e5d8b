// The server of whichever runtime this is.
import type { Clock } from '../../ports/clock.ts';
import { serveBun } from './bun.ts';
import { serveDeno } from './deno.ts';
import type { Handler, Listening, ListenOptions } from './listening.ts';

/** The address or the port cannot be had. */
export class CannotListen extends Error {
  constructor({ hostname, port }: ListenOptions, cause: unknown) {
    super(`cannot listen at ${hostname}:${port}: it is taken, or not this machine's to give`, { cause });
    this.name = 'CannotListen';
  }
}

/** Rejects with `CannotListen`. */
export async function serve(handler: Handler, options: ListenOptions, clock: Clock): Promise<Listening> {
  try {
    return await ('Bun' in globalThis ? serveBun : serveDeno)(handler, options, clock);
  } catch (cause) {
    throw new CannotListen(options, cause);
  }
}
