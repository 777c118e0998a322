-- What receipts and reports are made of, and jobs by name.

-- Attempts, sizes and waits of a job: kept when the journal is pruned.
CREATE TABLE accounts (
    id      TEXT PRIMARY KEY,
    account BLOB NOT NULL
) STRICT;

ALTER TABLE jobs ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN submitted REAL NOT NULL DEFAULT 0;
-- NULL: it is not over.
ALTER TABLE jobs ADD COLUMN ended REAL;
ALTER TABLE jobs ADD COLUMN device_seconds REAL NOT NULL DEFAULT 0;
UPDATE jobs SET
    name = record ->> '$.name',
    submitted = record ->> '$.submitted',
    ended = record ->> '$.ended',
    device_seconds = ifnull(record ->> '$.device_seconds', 0);
CREATE INDEX jobs_by_name ON jobs (name, user, row);
CREATE INDEX jobs_by_end ON jobs (ended);
CREATE INDEX jobs_by_use ON jobs (user, device_seconds);
