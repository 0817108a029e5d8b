// PGlite parses and plans each statement of `query` again, which is most of the time of a read by key. Here a statement that
// comes a second time is prepared once under a name, and only bound and executed from then on.
import { type PGlite, parse, protocol, type QueryOptions, type Results } from '@electric-sql/pglite';

type Message = Awaited<ReturnType<PGlite['execProtocolStream']>>[number];
type Row = Record<string, unknown>;

type Statement = {
  readonly name: string;
  readonly parameterTypes: readonly number[];
  /** Of the columns; none for a statement without rows. */
  readonly columns: readonly Message[];
};

/** More than the service has; statements with other texts each time are not prepared. */
const STATEMENTS_MAX = 200;

const { serialize, messages } = protocol;

/** Replaces `query`, also in transactions. Before any statement is sent. */
export function prepareStatements(pg: PGlite): void {
  const plain = { query: pg.query.bind(pg), transaction: pg.transaction.bind(pg) };
  const sent = new Set<string>();
  const statements = new Map<string, Statement>();

  /** Whether the text comes again: the first time it is sent unprepared. */
  function isRepeated(text: string): boolean {
    if (statements.has(text)) return true;
    if (statements.size >= STATEMENTS_MAX) return false;
    if (sent.delete(text)) return true;
    if (sent.size >= STATEMENTS_MAX) sent.clear();
    sent.add(text);
    return false;
  }

  /** One call for each message, as `query` does: after a panic PGlite does not return from several in one. */
  async function send(...parts: readonly Uint8Array[]): Promise<Message[]> {
    const answered: Message[] = [];
    try {
      for (const part of parts) answered.push(...(await pg.execProtocolStream(part, { syncToFs: false })));
    } finally {
      answered.push(...(await pg.execProtocolStream(serialize.sync(), { syncToFs: false })));
    }
    return answered;
  }

  async function statementOf(text: string): Promise<Statement> {
    const known = statements.get(text);
    if (known !== undefined) return known;
    const name = `s${statements.size}`;
    const described = await send(serialize.parse({ name, text }), serialize.describe({ type: 'S', name }));
    const parameterTypes = described.flatMap((message) =>
      message instanceof messages.ParameterDescriptionMessage ? message.dataTypeIDs : [],
    );
    const columns = described.filter((message) => message instanceof messages.RowDescriptionMessage);
    const statement = { name, parameterTypes, columns };
    statements.set(text, statement);
    return statement;
  }

  const execute = <T>(
    text: string,
    values: readonly unknown[],
    options?: QueryOptions,
  ): Promise<Results<T>> =>
    pg._runExclusiveQuery(async () => {
      const { name: statement, parameterTypes, columns } = await statementOf(text);
      const bound = values.map((value, at) => {
        if (value === null || value === undefined) return null;
        return pg.serializers[parameterTypes[at] ?? 0]?.(value) ?? String(value);
      });
      const answered = await send(serialize.bind({ statement, values: bound }), serialize.execute({}));
      // Inherited: PGlite copies its parsers of all types for each statement that brings some of its own.
      const parsers = Object.assign(Object.create(pg.parsers), options?.parsers);
      const rowMode = options?.rowMode === undefined ? {} : { rowMode: options.rowMode };
      const [results] = parse.parseResults([...columns, ...answered], parsers, rowMode);
      return results as Results<T>;
    });

  Object.assign(pg, {
    query: (text: string, values: unknown[] = [], options?: QueryOptions) =>
      pg.ready && isRepeated(text)
        ? pg._runExclusiveTransaction(() => execute<Row>(text, values, options))
        : plain.query(text, values, options),
    transaction: <T>(work: Parameters<typeof plain.transaction<T>>[0]) =>
      plain.transaction((tx) => {
        const query = (text: string, values: unknown[] = [], options?: QueryOptions) =>
          !tx.closed && isRepeated(text)
            ? execute<Row>(text, values, options)
            : tx.query(text, values, options);
        return work(Object.assign(Object.create(tx), { query }));
      }),
  });
}
