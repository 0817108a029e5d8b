// The cases of requests to places that no request may reach, and a resolver that answers as a case says.
import { readFileSync } from 'node:fs';
import type { Resolver } from '#src/ports/resolver.ts';

export type SsrfCase = {
  readonly url: string;
  readonly expected: 'allow' | 'block';
  readonly why: string;
  readonly group: string;
  /** What the URL parser makes of the host; null where it must refuse. */
  readonly host?: string | null;
  /** The code of the refusal, where the case fixes one. */
  readonly code?: string;
  /** What DNS answers; absent: it must not be asked. */
  readonly dns?: readonly string[];
  /** What DNS answers from the second look-up on. */
  readonly dnsThen?: readonly string[];
};

/** The rules behind the `own-host` cases: PUBLIC_BASE_URL. */
export const SSRF_BASE_URL = 'https://relay.example.com';

/** All cases of both fixtures. */
export function ssrfCases(): SsrfCase[] {
  return ['ssrf-cases.json', 'ssrf-cases-more.json'].flatMap((file): SsrfCase[] =>
    JSON.parse(readFileSync(new URL(`../../fixtures/${file}`, import.meta.url), 'utf8')),
  );
}

/** Answers `dns` first and `dnsThen` after; counts. Asked without an answer to give, it says so by throwing. */
export function caseResolver(ssrfCase: SsrfCase): Resolver & { lookups(): number } {
  let lookups = 0;
  return {
    lookups: () => lookups,
    resolve(name) {
      lookups++;
      const addresses = lookups === 1 ? ssrfCase.dns : (ssrfCase.dnsThen ?? ssrfCase.dns);
      if (addresses === undefined) throw new Error(`${name} was looked up`);
      return Promise.resolve(
        addresses.length === 0 ? { outcome: 'not_found' } : { outcome: 'addresses', addresses },
      );
    },
  };
}
