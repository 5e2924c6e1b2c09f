package storetest

import (
	"syscall"
	"testing"
)

// SmallDisk mounts a file system of a size such as "1m", and returns its directory. It skips the
// test if the process may not mount.
func SmallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("perch", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}
