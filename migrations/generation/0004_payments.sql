CREATE TABLE "chain_books" (
	"id" text PRIMARY KEY NOT NULL,
	"network" text NOT NULL,
	"asset" text NOT NULL,
	"payee" text NOT NULL,
	"from_block" bigint NOT NULL,
	"to_block" bigint NOT NULL,
	"block_hash" text NOT NULL,
	"block_time" text NOT NULL,
	"received" text NOT NULL,
	"unattributed" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "open_payments" (
	"stream" text PRIMARY KEY NOT NULL,
	"entry" jsonb NOT NULL,
	"reserved_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "paid_jobs" (
	"job_id" text PRIMARY KEY NOT NULL,
	"stream" text,
	"paid" jsonb,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "payment_sums" (
	"id" text PRIMARY KEY NOT NULL,
	"network" text NOT NULL,
	"asset" text NOT NULL,
	"charged" text NOT NULL,
	"served" text NOT NULL,
	"refunded" text NOT NULL,
	"open" text NOT NULL,
	"missing" text NOT NULL,
	"corrected" text NOT NULL,
	"unconfirmed" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "refused_payments" (
	"stream" text PRIMARY KEY NOT NULL,
	"network" text NOT NULL,
	"asset" text NOT NULL,
	"payee" text NOT NULL,
	"valid_before" text NOT NULL,
	"ends_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "unconfirmed_charges" (
	"stream" text PRIMARY KEY NOT NULL,
	"network" text NOT NULL,
	"asset" text NOT NULL,
	"payee" text NOT NULL,
	"amount" text NOT NULL,
	"settled_at" bigint NOT NULL,
	"valid_before" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "open_payments_oldest" ON "open_payments" USING btree ("reserved_at");--> statement-breakpoint
CREATE INDEX "refused_payments_ends" ON "refused_payments" USING btree ("ends_at");--> statement-breakpoint
CREATE INDEX "unconfirmed_charges_oldest" ON "unconfirmed_charges" USING btree ("settled_at");