// PAYMENT-RESPONSE: that the payment is settled, and on delivery the signed receipt of it.
import type { Settlement, WireHeaders } from '#src/ports/payment-protocol.ts';
import { base64Json } from './challenge.ts';
import type { Offers } from './offers.ts';
import type { Asked } from './requirements.ts';
import { networkNameV1, type Terms } from './terms.ts';

/** The same settlement gives the same headers: nothing in them is of the time of the answer. */
export async function settlementHeaders(
  deps: { readonly asked: Asked; readonly offers: Offers },
  settlement: Settlement,
): Promise<WireHeaders> {
  const { payment, x402Version } = settlement;
  const { payer, network, amount } = payment;
  // the protocol's word for a transaction that nobody could name
  const transaction = payment.transaction ?? '';
  const extensions = settlement.delivered ? await deliveryReceipt(deps, settlement) : {};
  const response = {
    success: true,
    transaction,
    network,
    payer,
    amount,
    ...(Object.keys(extensions).length === 0 ? {} : { extensions }),
  };
  const headers = { 'PAYMENT-RESPONSE': base64Json(response) };
  if (x402Version === 2) return headers;
  const v1 = { success: true, transaction, network: networkNameV1(network) ?? network, payer };
  return { ...headers, 'X-PAYMENT-RESPONSE': base64Json(v1) };
}

function deliveryReceipt(
  { asked, offers }: { readonly asked: Asked; readonly offers: Offers },
  { route, payment, completedAt }: Settlement,
): Promise<Record<string, unknown>> {
  const { payer, network, transaction } = payment;
  const { required } = asked.routes[route];
  return offers.receipt({
    resourceUrl: required.resource.url,
    requirements: asked.terms.requirements,
    payer,
    network: network as Terms['network'],
    transaction,
    issuedAtMs: Date.parse(completedAt),
  });
}
