-- Roles of a ledger on PostgreSQL. The owner of the tables runs this once; `psidp ledger roles` prints it.
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

CREATE OR REPLACE FUNCTION psidp_entries_who() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
$$ DECLARE
    said     jsonb   := NEW.event::jsonb;
    officer  boolean := pg_has_role(session_user, 'psidp_officer', 'MEMBER');
    entries  text    := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    above    record;
    asked    text;
    yes      record;
    most     double precision;
BEGIN
    EXECUTE format('SELECT id, hash FROM %s ORDER BY id DESC LIMIT 1', entries) INTO above;
    IF NEW.id <> coalesce(above.id, 0) + 1 OR (above.id IS NOT NULL AND NEW.previous <> above.hash) THEN
        RAISE EXCEPTION 'an entry must follow the last one' USING ERRCODE = '23505';
    END IF;
    IF abs(extract(epoch FROM NEW.time::timestamptz - clock_timestamp())) > 600 THEN
        RAISE EXCEPTION 'an entry must carry the time of now, got %', NEW.time USING ERRCODE = '42501';
    END IF;
    IF NEW.state IN ('answered', 'withheld', 'interrupted', 'renewed') THEN
        RETURN NEW;
    END IF;
    IF said ->> 'by' IS DISTINCT FROM session_user::text THEN
        RAISE EXCEPTION 'the actor must be the login %, got %', session_user, said ->> 'by' USING ERRCODE = '42501';
    END IF;
    IF NEW.state IN ('approved', 'denied') THEN
        EXECUTE format('SELECT event::jsonb ->> ''by'' FROM %s WHERE id = $1 AND budget = $2 AND state = ''requested''', entries)
            INTO asked USING NEW.refers, NEW.budget;
        IF NEW.state = 'approved' AND (asked IS NULL OR asked = session_user::text) THEN
            RAISE EXCEPTION 'a request must be approved by somebody else' USING ERRCODE = '42501';
        END IF;
        officer := officer OR (NEW.state = 'denied' AND asked = session_user::text);
    END IF;
    IF NEW.state NOT IN ('spent', 'requested') AND NOT officer THEN
        RAISE EXCEPTION 'only an officer may write an entry that is %', NEW.state USING ERRCODE = '42501';
    END IF;
    IF NEW.state <> 'spent' THEN
        RETURN NEW;
    END IF;
    EXECUTE format('SELECT (event::jsonb ->> ''above'')::double precision FROM %s WHERE budget = $1 AND state IN (''opened'', ''limited'') AND state NOT IN (''spent'', ''answered'', ''withheld'', ''interrupted'') ORDER BY id DESC LIMIT 1', entries)
        INTO most USING NEW.budget;
    IF most IS NULL OR NEW.psi <= most THEN
        RETURN NEW;
    END IF;
    EXECUTE format('SELECT a.event::jsonb ->> ''until'' AS until, r.event::jsonb AS said, r.purpose, r.partition FROM %s a JOIN %s r ON r.id = a.refers WHERE a.id = $1 AND a.state = ''approved'' AND a.budget = $2 AND NOT EXISTS (SELECT FROM %s d WHERE d.refers = r.id AND d.state = ''denied'')', entries, entries, entries)
        INTO yes USING NEW.refers, NEW.budget;
    IF yes.until IS NULL OR yes.until::timestamptz < clock_timestamp()
        OR yes.said ->> 'by' <> session_user::text
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
