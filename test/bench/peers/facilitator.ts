// The facilitator of P9: it answers at once that a payment is valid, settles each nonce once, and checks no signature.
import { Elysia } from 'elysia';

const settled = new Set<string>();

type Asked = {
  readonly paymentPayload: {
    readonly accepted: { readonly network: string };
    readonly payload: { readonly authorization: { readonly from: string; readonly nonce: string } };
  };
};

const app = new Elysia()
  .get('/', () => ({ settled: settled.size }))
  .get('/supported', () => ({
    kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453' }],
    extensions: [],
  }))
  .post('/verify', ({ body }) => {
    const { paymentPayload } = body as Asked;
    return { isValid: true, payer: paymentPayload.payload.authorization.from };
  })
  .post('/settle', ({ body }) => {
    const { accepted, payload } = (body as Asked).paymentPayload;
    const { from, nonce } = payload.authorization;
    if (settled.has(nonce)) throw new Error('a payment was settled twice');
    settled.add(nonce);
    const transaction = `0x${String(settled.size).padStart(64, '0')}`;
    return { success: true, transaction, network: accepted.network, payer: from };
  });
app.listen({ hostname: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', listen: `127.0.0.1:${app.server?.port}` }));
