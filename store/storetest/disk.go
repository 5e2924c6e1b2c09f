package storetest

import (
	"syscall"
	"testing"
)

// SmallDisk mounts a file system of the given size, which needs the rights of an
// administrator.
func SmallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("perch", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}
