package store

import "time"

// maxRetry is the maximum delay between two attempts to write to a failing disk. It is short enough for an owner who has
// freed space, and attempts once a minute do no harm.
const maxRetry = time.Minute

// flushLoop commits the backlog when its oldest value is flushAfter old. Open starts it and Close waits for it. It logs
// when commits begin to fail, when the cause changes, and when they succeed again.
func (db *DB) flushLoop() {
	timer := time.NewTimer(db.flushAfter)
	timer.Stop()
	defer timer.Stop()
	retry, logged := db.flushAfter, ""
	for {
		select {
		case <-db.stop:
			return
		case <-db.wake:
			timer.Reset(db.flushAfter)
		case <-timer.C:
			err := db.commit()
			if err == nil {
				if logged != "" {
					db.log.Info("database can be written again", "path", db.path)
				}
				retry, logged = db.flushAfter, ""
				continue
			}
			if err.Error() != logged {
				logged = err.Error()
				db.log.Error("database cannot be written, trying again", "err", err)
			}
			timer.Reset(retry)
			retry = min(2*retry, maxRetry)
		}
	}
}
