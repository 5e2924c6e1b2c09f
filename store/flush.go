package store

import "time"

// maxRetry is the longest pause between two attempts on a failing disk: soon enough after space was freed, and rare
// enough not to matter.
const maxRetry = time.Minute

// flushLoop commits what PutSoon queued, flushAfter after the first value. Open starts it and Close waits for it. It
// logs a failure when it begins, when its cause changes and when it is over.
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
