// The server of whichever runtime this is.
import type { Clock } from '../../ports/clock.ts';
import { serveBun } from './bun.ts';
import { serveDeno } from './deno.ts';
import type { Handler, Listening, ListenOptions } from './listening.ts';

/** Rejects where the port cannot be had. */
export function serve(handler: Handler, options: ListenOptions, clock: Clock): Promise<Listening> {
  return 'Bun' in globalThis ? serveBun(handler, options, clock) : serveDeno(handler, options, clock);
}
