-- Roles of a ledger on PostgreSQL. The owner of the tables runs this once, and again where psidp says so after an
-- update; `psidp ledger roles` prints it.
--
--   psidp_auditor   reads everything, writes nothing
--   psidp_analyst   also spends and asks for approval, under its own login only
--   psidp_officer   also opens, raises, splits, resets, limits, pauses, closes; approves and denies what others ask for
--
-- Give them to logins: GRANT psidp_analyst TO bob. Nobody but the owner can update, delete, or take the guards away.

DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY ARRAY['psidp_auditor', 'psidp_analyst', 'psidp_officer'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', name); END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), name);
    END LOOP;
END $$

GRANT SELECT ON psidp_ledger, psidp_entries TO psidp_auditor, psidp_analyst, psidp_officer

GRANT INSERT ON psidp_entries TO psidp_analyst, psidp_officer

-- Who may write which entry, and what it may say, as far as one look at a few rows tells; `psidp ledger verify` recomputes
-- the rest. Kinds of entries that are not named here are refused.
CREATE OR REPLACE FUNCTION psidp_entries_who() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
$$ DECLARE
    said     jsonb   := NEW.event::jsonb;
    me       text    := session_user::text;
    officer  boolean := pg_has_role(session_user, 'psidp_officer', 'MEMBER');
    entries  text    := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    form     text    := '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$';
    above    record;
    opening  jsonb;
    standing jsonb;
    period   text;
    spend    record;
    asked    record;
    earlier  record;
    yes      record;
    most     double precision;
BEGIN
    EXECUTE format('SELECT id, hash, time FROM %s ORDER BY id DESC LIMIT 1', entries) INTO above;
    IF NEW.id <> coalesce(above.id, 0) + 1 OR (above.id IS NOT NULL AND NEW.previous <> above.hash) THEN
        RAISE EXCEPTION 'an entry must follow the last one' USING ERRCODE = '23505';
    END IF;
    IF NEW.time !~ form OR abs(extract(epoch FROM NEW.time::timestamptz - clock_timestamp())) > 300
        OR NEW.time COLLATE "C" < above.time COLLATE "C" THEN
        RAISE EXCEPTION 'an entry must carry the time of now, got %', NEW.time USING ERRCODE = '42501';
    END IF;
    IF said ->> 'by' IS DISTINCT FROM me OR NEW.actor <> me OR NEW.table_name <> coalesce(said ->> 'table', '') THEN
        RAISE EXCEPTION 'the actor must be the login %, got %', me, said ->> 'by' USING ERRCODE = '42501';
    END IF;
    IF NEW.state <> 'spent' AND said ->> 'kind' IS DISTINCT FROM NEW.state
        AND NOT (NEW.state = 'answered' AND said ->> 'kind' = 'used') THEN
        RAISE EXCEPTION 'an entry that is % must be of this kind, got %', NEW.state, said ->> 'kind' USING ERRCODE = '42501';
    END IF;
    IF NEW.state = 'spent' AND NOT (NEW.psi >= 0 AND NEW.psi < 'Infinity' AND NEW.kappa >= 0 AND NEW.kappa < 1)
        OR NEW.state <> 'spent' AND (NEW.psi <> 0 OR NEW.kappa <> 0) THEN
        RAISE EXCEPTION 'an entry that is % cannot have psi % and kappa %', NEW.state, NEW.psi, NEW.kappa USING ERRCODE = '42501';
    END IF;
    EXECUTE format('SELECT event::jsonb FROM %s WHERE budget = $1 AND state = ''opened'' AND state NOT IN (''spent'', ''answered'', ''withheld'', ''interrupted'') ORDER BY id LIMIT 1', entries)
        INTO opening USING NEW.budget;
    EXECUTE format('SELECT standing::jsonb FROM %s WHERE budget = $1 ORDER BY id DESC LIMIT 1', entries)
        INTO standing USING NEW.budget;
    IF NEW.state <> 'opened' AND opening IS NULL THEN
        RAISE EXCEPTION 'budget % was never opened', NEW.budget USING ERRCODE = '42501';
    END IF;
    period := CASE opening ->> 'renews'
        WHEN 'day' THEN to_char(NEW.time::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD')
        WHEN 'week' THEN to_char(NEW.time::timestamptz AT TIME ZONE 'UTC', 'IYYY-"W"IW')
        WHEN 'month' THEN to_char(NEW.time::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM')
        WHEN 'quarter' THEN to_char(NEW.time::timestamptz AT TIME ZONE 'UTC', 'YYYY-"Q"Q')
        WHEN 'year' THEN to_char(NEW.time::timestamptz AT TIME ZONE 'UTC', 'YYYY')
    END;
    IF NEW.key <> '' THEN
        EXECUTE format('SELECT request, max(CASE WHEN state = ''answered'' THEN id END) AS answer, bool_or(state = ''spent'' AND (psi, kappa, partition) <> ($4, $5, $6)) AS other FROM %s WHERE budget = $1 AND key = $2 AND key <> '''' GROUP BY request ORDER BY request = $3 LIMIT 1', entries)
            INTO earlier USING NEW.budget, NEW.key, NEW.request, NEW.psi, NEW.kappa, NEW.partition;
        IF earlier.request <> NEW.request OR (earlier.answer IS NOT NULL AND NEW.state IN ('spent', 'answered')) THEN
            RAISE EXCEPTION 'the key % was used for another request, or is answered', NEW.key USING ERRCODE = '42501';
        END IF;
        IF NEW.state = 'spent' AND earlier.other THEN
            RAISE EXCEPTION 'the key % was used for a spend at another price', NEW.key USING ERRCODE = '42501';
        END IF;
    END IF;
    IF NEW.state IN ('answered', 'withheld', 'interrupted') THEN
        EXECUTE format('SELECT event::jsonb ->> ''by'' AS who, key, request FROM %s WHERE id = $1 AND budget = $2 AND state = ''spent''', entries)
            INTO spend USING NEW.refers, NEW.budget;
        IF spend.who IS DISTINCT FROM me THEN
            RAISE EXCEPTION 'only who spent may say what became of it' USING ERRCODE = '42501';
        END IF;
        IF said ->> 'kind' = 'used' THEN
            spend.key := ''; spend.request := '';
        END IF;
        IF NEW.key <> spend.key OR NEW.request <> spend.request
            OR (said ->> 'kind' = 'answered' AND NEW.key = '') OR (said ->> 'kind' <> 'answered' AND NEW.answer <> '') THEN
            RAISE EXCEPTION 'what became of a spend must have its key and its request' USING ERRCODE = '42501';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.state = 'renewed' THEN
        IF period IS NULL OR said ->> 'period' IS DISTINCT FROM period
            OR NOT period COLLATE "C" > (standing ->> 'period') COLLATE "C"
            OR NEW.standing::jsonb ->> 'period' IS DISTINCT FROM period THEN
            RAISE EXCEPTION 'a renewal must begin the period of now, got %', said ->> 'period' USING ERRCODE = '42501';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.state IN ('approved', 'denied') THEN
        EXECUTE format('SELECT event::jsonb ->> ''by'' AS who, event::jsonb ->> ''terms'' AS terms FROM %s WHERE id = $1 AND budget = $2 AND state = ''requested''', entries)
            INTO asked USING NEW.refers, NEW.budget;
        IF NEW.state = 'approved' AND (asked.who IS NULL OR lower(asked.who) = lower(me) OR asked.terms <> said ->> 'terms') THEN
            RAISE EXCEPTION 'a request must be approved by somebody else, on its terms' USING ERRCODE = '42501';
        END IF;
        officer := officer OR (NEW.state = 'denied' AND asked.who = me);
    END IF;
    IF NEW.state NOT IN ('spent', 'requested') AND NOT (officer AND NEW.state IN
        ('opened', 'raised', 'split', 'reset', 'closed', 'limited', 'paused', 'resumed', 'approved', 'denied')) THEN
        RAISE EXCEPTION 'only an officer may write an entry that is %', NEW.state USING ERRCODE = '42501';
    END IF;
    IF NEW.state IN ('requested', 'approved')
        AND (coalesce(said ->> 'until', '') !~ form OR NOT (said ->> 'until')::timestamptz - NEW.time::timestamptz BETWEEN interval '0' AND interval '366 days') THEN
        RAISE EXCEPTION 'until must lie at most 366 days from now, got %', said ->> 'until' USING ERRCODE = '42501';
    END IF;
    IF NEW.state <> 'spent' THEN
        RETURN NEW;
    END IF;
    IF (standing ->> 'closed')::boolean THEN
        RAISE EXCEPTION 'budget % is closed', NEW.budget USING ERRCODE = '42501';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements_text(standing -> 'paused') name WHERE lower(name) IN ('', lower(me))) THEN
        RAISE EXCEPTION 'budget % is paused for %', NEW.budget, me USING ERRCODE = '42501';
    END IF;
    IF standing ->> 'period' IS DISTINCT FROM period OR NEW.standing::jsonb ->> 'period' IS DISTINCT FROM period THEN
        RAISE EXCEPTION 'a spend must be in the period of now, %', period USING ERRCODE = '42501';
    END IF;
    EXECUTE format('SELECT (event::jsonb ->> ''above'')::double precision FROM %s WHERE budget = $1 AND state IN (''opened'', ''limited'') AND state NOT IN (''spent'', ''answered'', ''withheld'', ''interrupted'') ORDER BY id DESC LIMIT 1', entries)
        INTO most USING NEW.budget;
    IF most IS NULL OR NEW.psi <= most THEN
        RETURN NEW;
    END IF;
    EXECUTE format('SELECT a.event::jsonb ->> ''until'' AS until, r.event::jsonb AS said, r.purpose, r.partition FROM %s a JOIN %s r ON r.id = a.refers WHERE a.id = $1 AND a.state = ''approved'' AND a.budget = $2 AND NOT EXISTS (SELECT FROM %s d WHERE d.refers = r.id AND d.state = ''denied'')', entries, entries, entries)
        INTO yes USING NEW.refers, NEW.budget;
    IF yes.until IS NULL OR yes.until::timestamptz < clock_timestamp()
        OR yes.said ->> 'by' <> me
        OR (yes.said ->> 'psi')::double precision <> NEW.psi OR (yes.said ->> 'kappa')::double precision <> NEW.kappa
        OR yes.purpose <> NEW.purpose OR yes.partition <> NEW.partition
        OR yes.said ->> 'table' IS DISTINCT FROM said ->> 'table'
        OR yes.said ->> 'table_unit' IS DISTINCT FROM said ->> 'table_unit'
    THEN
        RAISE EXCEPTION 'a spend of psi % needs an approval of exactly its terms', NEW.psi USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$

DROP TRIGGER IF EXISTS psidp_entries_who ON psidp_entries

CREATE TRIGGER psidp_entries_who BEFORE INSERT ON psidp_entries FOR EACH ROW EXECUTE FUNCTION psidp_entries_who()
