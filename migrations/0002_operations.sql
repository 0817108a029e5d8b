CREATE TABLE "model_versions" (
	"model" text PRIMARY KEY NOT NULL,
	"version" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "quota_windows" (
	"key" text PRIMARY KEY NOT NULL,
	"points" integer NOT NULL,
	"expire" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE INDEX "quota_windows_expire" ON "quota_windows" USING btree ("expire");--> statement-breakpoint
CREATE INDEX "jobs_ended" ON "jobs" USING btree ("updated_at") WHERE "jobs"."status" <> 'running';--> statement-breakpoint
CREATE INDEX "proofs_ended" ON "proofs" USING btree ("updated_at") WHERE "proofs"."status" <> 'running';--> statement-breakpoint
CREATE INDEX "receipts_signed" ON "receipts" USING btree ("signed_at");