// What of a stored event log cannot be read as it was written.

/**
 * `changed`: the bytes of the event do not match its checksum, or are no event. `unreadable`: the store cannot read the
 * part of its file. `missing`: nothing is stored at the position.
 */
export const DAMAGE_PROBLEMS = ['changed', 'unreadable', 'missing'] as const;
export type DamageProblem = (typeof DAMAGE_PROBLEMS)[number];

/** One event, or several whose streams are not known. */
export type Damage = {
  /** Positions of the first and the last event. */
  readonly from: string;
  readonly to: string;
  /** null: not known. `revision`: decimal. */
  readonly stream: string | null;
  readonly revision: string | null;
  readonly problem: DamageProblem;
};

/** The number of events; 1 for positions that are not consecutive numbers. */
export function damagedCount({ from, to }: Pick<Damage, 'from' | 'to'>): number {
  const width = /^\d+$/.test(from) && /^\d+$/.test(to) ? Number(to) - Number(from) + 1 : 1;
  return Number.isSafeInteger(width) && width > 1 ? width : 1;
}

/** As in "revision 3 of stream job-1, position 7". */
export function damagedPlace({ from, to, stream, revision }: Omit<Damage, 'problem'>): string {
  const named = stream === null ? '' : `revision ${revision} of stream ${stream}, `;
  return from === to
    ? `${named}position ${shortPosition(from)}`
    : `positions ${shortPosition(from)} to ${shortPosition(to)}`;
}

export const DAMAGE_CAUSE: Readonly<Record<DamageProblem, string>> = {
  changed: 'the bytes are not those that were stored',
  unreadable: 'this part of the file cannot be read',
  missing: 'nothing is stored there',
};

/** What the operator does about damage. `short`: for the end of an error's message. */
export const REMEDY = {
  short: 'put back a backup',
  whole: 'put back a backup, and keep what is damaged; relay audit --integrity lists all damage',
} as const;

/** Numbers of a fixed width are easier to read without their zeros. */
export const shortPosition = (position: string): string =>
  /^\d{20}$/.test(position) ? String(BigInt(position)) : position;
