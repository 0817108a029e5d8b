// What a paid route asks for, as documents publish it.
import type { JsonObject } from '#src/domain/canonical-json.ts';

/** A paid route as its 402 asks for it (x402 version 2). */
export type AskedFor = {
  /** Absolute address: what the payer says it pays for. */
  readonly resource: string;
  /** Payment requirements, each of which pays. */
  readonly accepts: readonly JsonObject[];
  /** What catalogues may publish (`bazaar`). */
  readonly extensions: JsonObject;
};
