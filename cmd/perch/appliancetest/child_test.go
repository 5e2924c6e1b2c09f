package appliancetest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"perch/must"
	"perch/waittest"
)

// TestRunChild checks that a child process survives the end of the thread that called RunChild.
func TestRunChild(t *testing.T) {
	child := ChildCommand("sleep", "60")
	ended, started, thread := make(chan struct{}), make(chan error, 1), 0
	ask := func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		thread = syscall.Gettid()
		started <- RunChild(child, func() {
			_ = child.Wait()
			close(ended)
		})
	}
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() { // the main thread, which Go never ends
			defer runtime.UnlockOSThread()
			go ask()
			<-ended
			return
		}
		ask()
	}()
	must.Succeed(t, <-started)
	waittest.For(t, "the thread has ended", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return os.IsNotExist(err)
	})
	must.Succeed(t, child.Process.Signal(syscall.SIGTERM))
	<-ended
	if by := child.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGTERM {
		t.Errorf("it was ended by %s, want the test's own signal", by)
	}
}
