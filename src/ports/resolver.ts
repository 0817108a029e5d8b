// DNS: every current address of a name.
import type { DnsAnswer } from '#src/domain/destination/policy.ts';

export interface Resolver {
  /**
   * A and AAAA of `name`, queried in parallel over the network (never the hosts file, never a literal), each address
   * in its standard text. At most one look-up of each kind. Resolves within `timeoutMs`. Never throws.
   * `not_found`: the name does not exist or has no address. `failed`: no answer in time, SERVFAIL or the like. `busy`:
   * not queried, too many look-ups are in flight.
   */
  resolve(name: string, timeoutMs: number): Promise<Resolution>;
}

export type Resolution = DnsAnswer;
