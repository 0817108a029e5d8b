// Which process writes the rows of a shared PostgreSQL: noted by the database itself, in the transaction of each batch;
// and held up there, for a process to be caught in the middle of one.
import postgres from 'postgres';
import { waitFor } from './service.ts';

/** `by`: the name of the process's connections. Projection positions: `from` is null for the first batch. */
export type Batch = { readonly by: string; readonly from: string | null; readonly to: string };

export type BatchWatch = {
  /** Since the watch began, in order. */
  batches(): Promise<readonly Batch[]>;
  /** Who wrote the last batch. */
  projecting(): Promise<string>;
  /** Resolves with the next batch that one of these writes. */
  nextBy(names: readonly string[]): Promise<Batch>;
  /** The next batch stays open once it is written: `by` has not committed it and will not before `free`. */
  hold(): Promise<{ readonly by: string; free(): Promise<void> }>;
  end(): Promise<void>;
};

/** Any number that is no lock of the service. */
const GATE = 7_001;

/** `url`: of a database that has its tables. */
export async function watchBatches(url: string): Promise<BatchWatch> {
  const sql = postgres(url, { max: 3, onnotice: () => undefined });
  const current = await waitFor('the read models', async () => {
    const [found] = await sql<{ schema: string }[]>`
      select schema from public.read_model_generations where state = 'current'`;
    return found;
  });
  await sql.unsafe(`
    create schema observed;
    create table observed.batches (n bigserial primary key, by text not null, "from" text, "to" text not null);
    create function observed.note() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(${GATE});
      insert into observed.batches (by, "from", "to") values (
        current_setting('application_name'), old.position, new.position);
      return null;
    end $$;
    create trigger note after update on "${current.schema}".projection
      for each row when (new.position is not null) execute function observed.note();
  `);
  const batches = () => sql<Batch[]>`select by, "from", "to" from observed.batches order by n`;
  return {
    batches,
    async projecting() {
      const [last] = await sql<
        Batch[]
      >`select by, "from", "to" from observed.batches order by n desc limit 1`;
      if (last === undefined) throw new Error('no batch was written yet');
      return last.by;
    },
    async nextBy(names) {
      const before = (await batches()).length;
      return waitFor('a batch', async () =>
        (await batches()).slice(before).find(({ by }) => names.includes(by)),
      );
    },
    async hold() {
      const gate = await sql.reserve();
      await gate`select pg_advisory_lock(${GATE})`;
      const by = await waitFor('a batch at the gate', async () => {
        const [waiting] = await sql<{ by: string }[]>`
          select application_name as by from pg_stat_activity join pg_locks using (pid)
          where locktype = 'advisory' and objid = ${GATE} and not granted`;
        return waiting?.by;
      });
      return {
        by,
        async free() {
          await gate`select pg_advisory_unlock(${GATE})`;
          gate.release();
        },
      };
    },
    end: () => sql.end({ timeout: 5 }),
  };
}
