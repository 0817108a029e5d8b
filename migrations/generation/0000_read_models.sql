CREATE TABLE "decisions" (
	"decision_id" text PRIMARY KEY NOT NULL,
	"recommendation" text NOT NULL,
	"confidence" text NOT NULL,
	"blocking_issues" jsonb NOT NULL,
	"warnings" jsonb NOT NULL,
	"reasons" jsonb NOT NULL,
	"action_hash" text NOT NULL,
	"policy_hash" text NOT NULL,
	"facts" jsonb NOT NULL,
	"created_at" text NOT NULL,
	"expires_at" text NOT NULL,
	"outcome_status" text NOT NULL,
	"job_id" text,
	"receipt_id" text,
	"receipt_verified" boolean NOT NULL,
	"response_status" integer,
	"error_category" text,
	"attempts" integer NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" text PRIMARY KEY NOT NULL,
	"status" text NOT NULL,
	"method" text NOT NULL,
	"mode" text NOT NULL,
	"attempts" integer NOT NULL,
	"attempt_log" jsonb NOT NULL,
	"target_commitment" text NOT NULL,
	"request_hash" text NOT NULL,
	"response_status" integer,
	"response_hash" text,
	"error_category" text,
	"decision_id" text,
	"receipt_id" text,
	"payment" jsonb,
	"refund" jsonb,
	"created_at" text NOT NULL,
	"updated_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "monitoring_hours" (
	"hour" text PRIMARY KEY NOT NULL,
	"succeeded" integer NOT NULL,
	"failed" integer NOT NULL,
	"position" text NOT NULL,
	"durations" integer[]
);
--> statement-breakpoint
CREATE TABLE "monitoring_minutes" (
	"minute" text PRIMARY KEY NOT NULL,
	"succeeded" integer NOT NULL,
	"failed" integer NOT NULL,
	"position" text NOT NULL,
	"durations" integer[]
);
--> statement-breakpoint
CREATE TABLE "monitoring_totals" (
	"id" text PRIMARY KEY NOT NULL,
	"started" bigint NOT NULL,
	"succeeded" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"last_updated_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "running_jobs" (
	"job_id" text PRIMARY KEY NOT NULL,
	"started_at" text NOT NULL,
	"lease_ends_at" bigint NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "proofs" (
	"job_id" text PRIMARY KEY NOT NULL,
	"receipt_id" text,
	"status" text NOT NULL,
	"method" text NOT NULL,
	"attempts" integer NOT NULL,
	"response_status" integer,
	"receipt_verified" boolean NOT NULL,
	"error_category" text,
	"created_at" text NOT NULL,
	"updated_at" text NOT NULL,
	"completed_at" text,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "receipts" (
	"id" text PRIMARY KEY NOT NULL,
	"job_id" text NOT NULL,
	"decision_id" text,
	"key_id" text NOT NULL,
	"jws" text NOT NULL,
	"verified" boolean NOT NULL,
	"signed_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "revoked_keys" (
	"key_id" text PRIMARY KEY NOT NULL,
	"since" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_checkpoint" (
	"id" text PRIMARY KEY NOT NULL,
	"size" bigint NOT NULL,
	"note" text NOT NULL,
	"signed_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_leaves" (
	"id" text PRIMARY KEY NOT NULL,
	"leaf_index" bigint NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_tiles" (
	"id" text PRIMARY KEY NOT NULL,
	"hashes" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_tree" (
	"id" text PRIMARY KEY NOT NULL,
	"size" bigint NOT NULL,
	"edge" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "trust_minutes" (
	"id" text PRIMARY KEY NOT NULL,
	"key_id" text NOT NULL,
	"verified" integer NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "trust_open_payments" (
	"job_id" text PRIMARY KEY NOT NULL,
	"missing" boolean NOT NULL,
	"closed" boolean NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "trust_totals" (
	"id" text PRIMARY KEY NOT NULL,
	"receipts" bigint NOT NULL,
	"verified" bigint NOT NULL,
	"latest_verified_at" text,
	"charged" bigint NOT NULL,
	"refunded" bigint NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "projection" (
	"id" text PRIMARY KEY NOT NULL,
	"version" bigint NOT NULL,
	"position" text,
	"event" text,
	"counts" jsonb NOT NULL,
	"loss" text
);
--> statement-breakpoint
CREATE TABLE "retention" (
	"id" text PRIMARY KEY NOT NULL,
	"jobs_before" text,
	"receipts_before" text,
	"jobs_purged" bigint NOT NULL,
	"receipts_purged" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "decisions_newest" ON "decisions" USING btree ("created_at","decision_id");--> statement-breakpoint
CREATE INDEX "jobs_ended" ON "jobs" USING btree ("updated_at") WHERE "jobs"."status" <> 'running';--> statement-breakpoint
CREATE INDEX "proofs_newest" ON "proofs" USING btree ("created_at","job_id");--> statement-breakpoint
CREATE INDEX "proofs_failed_newest" ON "proofs" USING btree ("completed_at","job_id") WHERE "proofs"."status" = 'failed';--> statement-breakpoint
CREATE INDEX "proofs_ended" ON "proofs" USING btree ("updated_at") WHERE "proofs"."status" <> 'running';--> statement-breakpoint
CREATE INDEX "receipts_unverified" ON "receipts" USING btree ("id") WHERE not "receipts"."verified";--> statement-breakpoint
CREATE INDEX "receipts_signed" ON "receipts" USING btree ("signed_at");--> statement-breakpoint
CREATE INDEX "trust_minutes_of_key" ON "trust_minutes" USING btree ("key_id","id");