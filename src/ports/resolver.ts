// DNS: every current address of a name.
import type { DnsAnswer } from '#src/domain/destination/policy.ts';

export interface Resolver {
  /**
   * A and AAAA of `name`, queried in parallel over the network (never the hosts file, never a literal), each address
   * in its standard text. At most one look-up of each kind; a lost packet is sent again. Resolves within `timeoutMs`. Never throws.
   * `addresses`: of one kind at least; `isPartial`: the other was not answered, or with an error.
   * `not_found`: the name does not exist or has no address. `failed`: no address, and a kind without an answer: none in time, SERVFAIL or the like. `busy`:
   * not queried, too many look-ups are in flight.
   */
  resolve(name: string, timeoutMs: number): Promise<Resolution>;
}

export type Resolution = DnsAnswer;
