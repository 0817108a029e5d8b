// Numbers for the transactions of one account. viem's nonce manager gives one number twice, or leaves one out, when
// transactions overlap on a busy machine: then some fail, or all that follow wait for ever.

/** Sends one transaction after the other, each in the chain's pool before the next one has its number. */
export type Numbered = <T>(send: (nonce: number) => Promise<T>) => Promise<T>;

/** `count`: the account's next number by the chain, pending transactions counted; asked anew after a failed send. */
export function numbered(count: () => Promise<number>): Numbered {
  let last: Promise<unknown> = Promise.resolve();
  let known: number | null = null;
  return (send) => {
    const sending = last.then(async () => {
      const nonce = known ?? (await count());
      known = null;
      const sent = await send(nonce);
      known = nonce + 1;
      return sent;
    });
    last = sending.catch(() => undefined);
    return sending;
  };
}
