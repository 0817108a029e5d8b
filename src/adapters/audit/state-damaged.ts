/** A value in a state file is not as it was written. */
export class StateDamaged extends Error {}
