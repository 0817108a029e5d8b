// Payments that this process knows to be unconfirmed, by who pays: each is a call in flight until its fate is known.
// Memory only, and a hint: whoever refuses because of them reads their streams first.

export type OpenUnknowns = {
  /** A settle call of this payment was answered by neither yes nor no. */
  add(account: string, stream: string): void;
  /** Its fate is known. */
  drop(stream: string): void;
  /** A call that has its own slot works on this payment, until what is answered is called; once is enough. */
  begin(stream: string): () => void;
  /** Streams of the account's payments that nobody works on, oldest first, without the call's own. */
  waiting(account: string, own: string): readonly string[];
};

/** `limit`: payments held over all accounts; the oldest are forgotten beyond it. */
export function openUnknowns(limit = 10_000): OpenUnknowns {
  const accounts = new Map<string, string>();
  const streams = new Map<string, Set<string>>();
  const busy = new Map<string, number>();
  const drop = (stream: string) => {
    const account = accounts.get(stream);
    if (account === undefined) return;
    accounts.delete(stream);
    const own = streams.get(account);
    own?.delete(stream);
    if (own?.size === 0) streams.delete(account);
  };
  return {
    add(account, stream) {
      if (accounts.has(stream)) return;
      accounts.set(stream, account);
      streams.set(account, (streams.get(account) ?? new Set()).add(stream));
      if (accounts.size > limit) for (const oldest of accounts.keys()) return drop(oldest);
    },
    drop,
    begin(stream) {
      busy.set(stream, (busy.get(stream) ?? 0) + 1);
      let working = true;
      return () => {
        if (!working) return;
        working = false;
        const left = (busy.get(stream) ?? 1) - 1;
        if (left > 0) busy.set(stream, left);
        else busy.delete(stream);
      };
    },
    waiting: (account, own) =>
      [...(streams.get(account) ?? [])].filter((stream) => stream !== own && !busy.has(stream)),
  };
}
