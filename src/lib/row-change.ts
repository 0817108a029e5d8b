/** What one event does to one row of a read model. One event changes a row at most once. */
export type RowChange<T extends string, R> = {
  /** The table's name in the database. */
  readonly table: T;
  /** The row's primary key. */
  readonly key: string;
  /** Pure, and total: null in is a row that is not there, null out a row to delete. */
  apply(row: R | null): R | null;
};
