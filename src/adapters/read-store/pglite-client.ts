// What drizzle calls of PGlite: `query` and `transaction`. PGlite 0.5.16 parses and plans each statement again (a read by key
// costs 0.6 ms of the thread, and 0.1 ms prepared), and takes no name for one, so drizzle's `prepare` changes nothing. Here a
// statement that comes a second time is prepared under a name, and only bound and executed from then on.
import { type PGlite, parse, protocol, type QueryOptions, type Results } from '@electric-sql/pglite';

type Message = Awaited<ReturnType<PGlite['execProtocolStream']>>[number];
type Query = (text: string, values?: unknown[], options?: QueryOptions) => Promise<Results<unknown>>;

type Statement = {
  readonly name: string;
  readonly parameterTypes: readonly number[];
  /** Of the columns; none for a statement without rows. */
  readonly columns: readonly Message[];
};

/** More than the service has; statements with other texts each time are not prepared. */
const STATEMENTS_MAX = 200;

const { serialize, messages } = protocol;

export class PgliteClient {
  readonly #pg: PGlite;
  readonly #onFailure: (cause: unknown) => void;
  /** Texts that were sent once. */
  readonly #sent = new Set<string>();
  readonly #statements = new Map<string, Statement>();

  /** `onFailure` is called with what each statement and transaction throws. */
  constructor(pg: PGlite, onFailure: (cause: unknown) => void) {
    this.#pg = pg;
    this.#onFailure = onFailure;
  }

  /** drizzle's types ask for all of PGlite. */
  get pglite(): PGlite {
    return this as unknown as PGlite;
  }

  readonly query: Query = (text, values = [], options) =>
    this.#reporting(
      this.#pg.ready && this.#isRepeated(text)
        ? this.#pg._runExclusiveTransaction(() => this.#execute(text, values, options))
        : this.#pg.query(text, values, options),
    );

  transaction<T>(work: (tx: { readonly query: Query }) => Promise<T>): Promise<T> {
    return this.#reporting(
      this.#pg.transaction((tx) =>
        work({
          query: (text, values = [], options) =>
            !tx.closed && this.#isRepeated(text)
              ? this.#execute(text, values, options)
              : tx.query(text, values, options),
        }),
      ),
    );
  }

  async #reporting<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (cause) {
      this.#onFailure(cause);
      throw cause;
    }
  }

  /** Whether the text comes again: the first time it is sent unprepared. */
  #isRepeated(text: string): boolean {
    if (this.#statements.has(text)) return true;
    if (this.#statements.size >= STATEMENTS_MAX) return false;
    if (this.#sent.delete(text)) return true;
    if (this.#sent.size >= STATEMENTS_MAX) this.#sent.clear();
    this.#sent.add(text);
    return false;
  }

  #execute(text: string, values: readonly unknown[], options?: QueryOptions): Promise<Results<unknown>> {
    const pg = this.#pg;
    return pg.runExclusive(async () => {
      const { name: statement, parameterTypes, columns } = await this.#statementOf(text);
      const bound = values.map((value, at) => {
        if (value === null || value === undefined) return null;
        return pg.serializers[parameterTypes[at] ?? 0]?.(value) ?? String(value);
      });
      const answered = await this.#send(serialize.bind({ statement, values: bound }), serialize.execute({}));
      // Inherited: PGlite copies its parsers of all types for each statement that brings some of its own.
      const parsers = Object.assign(Object.create(pg.parsers), options?.parsers);
      const rowMode = options?.rowMode === undefined ? {} : { rowMode: options.rowMode };
      const [results] = parse.parseResults([...columns, ...answered], parsers, rowMode);
      return results as Results<unknown>;
    });
  }

  async #statementOf(text: string): Promise<Statement> {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const name = `s${this.#statements.size}`;
    const parts = [serialize.parse({ name, text }), serialize.describe({ type: 'S', name })];
    const described = await this.#send(...parts);
    const parameterTypes = described.flatMap((message) =>
      message instanceof messages.ParameterDescriptionMessage ? message.dataTypeIDs : [],
    );
    const columns = described.filter((message) => message instanceof messages.RowDescriptionMessage);
    const statement = { name, parameterTypes, columns };
    this.#statements.set(text, statement);
    return statement;
  }

  /** One call for each message, as `query` does: after a panic PGlite does not return from several in one. */
  async #send(...parts: readonly Uint8Array[]): Promise<Message[]> {
    const answered: Message[] = [];
    try {
      for (const part of parts)
        answered.push(...(await this.#pg.execProtocolStream(part, { syncToFs: false })));
    } finally {
      answered.push(...(await this.#pg.execProtocolStream(serialize.sync(), { syncToFs: false })));
    }
    return answered;
  }
}
