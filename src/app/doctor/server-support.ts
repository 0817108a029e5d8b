// Whether the maker of a database still supports the line of a server, as of November 2026.

/** `until`: its last day; null: none is announced. */
type Line = { readonly line: string; readonly until: string | null };

const POSTGRES: readonly Line[] = [
  { line: '13', until: '2025-11-13' },
  { line: '14', until: '2026-11-12' },
  { line: '15', until: '2027-11-11' },
  { line: '16', until: '2028-11-09' },
  { line: '17', until: '2029-11-08' },
  { line: '18', until: '2030-11-14' },
];
/** KurrentDB 26.0 is the same server under another licence. This release was run with 23.10.6 alone. */
const EVENT_STORE: readonly Line[] = [
  { line: '23.10', until: '2025-10-31' },
  { line: '24.10', until: '2026-10-31' },
  { line: '26.0', until: null },
];

export type Support = 'supported' | 'ended' | 'unknown';

const supportOf = (lines: readonly Line[], line: string, nowMs: number): Support => {
  const found = lines.find((one) => one.line === line);
  if (found === undefined) return 'unknown';
  const { until } = found;
  return until === null || nowMs < Date.parse(until) + 86_400_000 ? 'supported' : 'ended';
};

/** `version`: `15.6`, `17.2 (Debian 17.2-1)`. */
export const postgresSupport = (version: string, nowMs: number): Support =>
  supportOf(POSTGRES, /^\d+/.exec(version)?.[0] ?? '', nowMs);

/** `version`: `23.10.6`, `26.0.1.5`. */
export const eventStoreSupport = (version: string, nowMs: number): Support =>
  supportOf(EVENT_STORE, /^\d+\.\d+/.exec(version)?.[0] ?? '', nowMs);

export const SUPPORT_TEXT: Readonly<Record<Support, string>> = {
  supported: 'a line that its maker supports',
  ended: 'a line that its maker supports no longer: plan an update',
  unknown: 'of whose line this release does not know whether its maker supports it',
};
