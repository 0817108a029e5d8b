// What the status page says in words and figures.
import { ATTENTION, type AttentionReason } from '#src/domain/monitoring/alert-rules.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const REASONS: Readonly<Record<AttentionReason, string>> = {
  failure_rate: `More than ${percent(ATTENTION.failureRate)} of the executions that finished in this window failed.`,
  overdue_job: 'An execution has been running for longer than it may.',
  unverified_receipt: 'A stored receipt does not verify.',
  projection_lag: `The records are more than ${duration(ATTENTION.lagMs)} behind the event log: what stands here may be old.`,
};

/** Windows that the page links to. */
export const WINDOWS: readonly (readonly [name: string, windowMs: number])[] = [
  ['1 hour', HOUR_MS],
  ['24 hours', DAY_MS],
  ['7 days', 7 * DAY_MS],
  ['30 days', 30 * DAY_MS],
];

export function windowName(windowMs: number): string {
  return WINDOWS.find(([, known]) => known === windowMs)?.[0] ?? duration(windowMs);
}

export function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

/** With the units that matter at its size: `250 ms`, `1.25 s`, `3 min 20 s`, `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < MINUTE_MS) return `${Math.round(ms / 10) / 100} s`;
  const [large, small, largeMs, smallMs] = unitsOf(ms);
  const rest = Math.floor((ms % largeMs) / smallMs);
  return `${Math.floor(ms / largeMs)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`;
}

function unitsOf(ms: number): readonly [string, string, number, number] {
  if (ms < HOUR_MS) return ['min', 's', MINUTE_MS, 1000];
  return ms < DAY_MS ? ['h', 'min', HOUR_MS, MINUTE_MS] : ['d', 'h', DAY_MS, HOUR_MS];
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}

/** `2026-11-22 01:45`. */
export const timeText = (at: string): string => at.slice(0, 16).replace('T', ' ');
