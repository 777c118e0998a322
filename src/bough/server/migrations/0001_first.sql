-- The first form of the store. What is decided is a journal of steps; everything else can be
-- looked up by it, or is asked for too often to be worked out anew.
-- Text in the columns `what`, `reason`, `record`, `spec`, `recipe` and `value` is JSON, kept as
-- bytes: they are handed through undecoded, and bytes that make no sense are no error of SQLite's.

-- One row for each thing that happened (an event) or was decided (a command), in order, no gaps.
CREATE TABLE journal (
    seq    INTEGER PRIMARY KEY,
    step   INTEGER NOT NULL,
    at     REAL NOT NULL,
    job    TEXT,
    what   BLOB NOT NULL,
    reason BLOB
) STRICT;
CREATE INDEX journal_by_job ON journal (job, seq) WHERE job IS NOT NULL;

-- What one decision took and gave: its last entry, how many there are, and the CRC-32 of them.
CREATE TABLE steps (
    step    INTEGER PRIMARY KEY,
    at      REAL NOT NULL,
    seq     INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    crc     INTEGER NOT NULL
) STRICT;

-- Entries that could not be read when the store was opened, as they were found.
CREATE TABLE dropped (
    row    INTEGER PRIMARY KEY,
    seq    INTEGER,
    step   INTEGER,
    at     REAL,
    what   BLOB,
    reason BLOB,
    why    TEXT NOT NULL
) STRICT;

-- The scheduler after an entry.
CREATE TABLE snapshots (
    seq  INTEGER PRIMARY KEY,
    data BLOB NOT NULL,
    crc  INTEGER NOT NULL
) STRICT;

-- By what policy and settings it was decided, from the entry after `seq` on.
CREATE TABLE conditions (
    row  INTEGER PRIMARY KEY,
    seq  INTEGER NOT NULL,
    what BLOB NOT NULL
) STRICT;

-- A job as it is shown, in order of submission. Jobs that are over stay.
CREATE TABLE jobs (
    row    INTEGER PRIMARY KEY,
    id     TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL,
    user   TEXT NOT NULL,
    queue  TEXT NOT NULL,
    state  TEXT NOT NULL,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX jobs_by_number ON jobs (number);
CREATE INDEX jobs_by_state ON jobs (state, row);
CREATE INDEX jobs_by_user ON jobs (user, state, row, queue);
CREATE INDEX jobs_by_queue ON jobs (queue, state, row);

-- What was asked for, and how it is run: the latter is its owner's alone. Apart from `jobs`, as an
-- environment can be large and lists do not need it.
CREATE TABLE recipes (
    id     TEXT PRIMARY KEY,
    uid    INTEGER NOT NULL,
    spec   BLOB NOT NULL,
    recipe BLOB NOT NULL
) STRICT;

-- Sent again with the same key, a submission is the same job.
CREATE TABLE keys (
    row  INTEGER PRIMARY KEY,
    user TEXT NOT NULL,
    key  TEXT NOT NULL,
    id   TEXT NOT NULL,
    UNIQUE (user, key)
) STRICT;

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- Who may come in over the network; only the SHA-256 of what they say is kept.
CREATE TABLE tokens (
    name    TEXT PRIMARY KEY,
    hash    BLOB NOT NULL UNIQUE,
    user    TEXT NOT NULL,
    scopes  BLOB NOT NULL,
    created REAL NOT NULL,
    expires REAL
) STRICT;
