package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
)

func childPuts(file string) {
	db, err := Open(file, Options{})
	if err != nil {
		childFails(err)
	}
	numbers := NewTable[int](db, "numbers")
	for i := 0; ; i++ {
		numbers.PutSoon("latest", i)
		if err := numbers.Put(fmt.Sprintf("%08d", i), i); err != nil {
			childFails(err)
		}
		fmt.Println(i)
	}
}

func childHolds(file string) {
	if _, err := Open(file, Options{}); err != nil {
		childFails(err)
	}
	fmt.Println("held")
	select {}
}

// childOpens waits until a file that starts all children at the same moment exists, opens the database, and prints whether
// it succeeded.
func childOpens(file string) {
	for _, err := os.Stat(file + ".go"); err != nil; _, err = os.Stat(file + ".go") {
		time.Sleep(time.Millisecond)
	}
	db, err := Open(file, Options{Timeout: 100 * time.Millisecond})
	switch {
	case errors.Is(err, ErrLocked):
		fmt.Println("locked")
	case err != nil:
		childFails(err)
	default:
		if err := NewTable[int](db, "who").Put("me", os.Getpid()); err != nil {
			childFails(err)
		}
		fmt.Println("got")
	}
	select {}
}

func TestKilledProcessKeepsWhatItAcknowledged(t *testing.T) {
	path := dbPath(t)
	next := 0
	for round := range 5 {
		cmd, lines := child(t, "put", path)
		acknowledged := -1
		for range 10 + 7*round {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
			n := must.Value(strconv.Atoi(lines.Text()))(t)
			acknowledged = n
		}
		must.Succeed(t, cmd.Process.Kill())
		for lines.Scan() { // reads the output that the child wrote before it was killed
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				acknowledged = n
			}
		}
		_ = cmd.Wait()

		db := open(t, path, Options{})
		numbers := NewTable[int](db, "numbers")
		for i := 0; i <= acknowledged; i++ {
			if got, found, err := numbers.Get(fmt.Sprintf("%08d", i)); !found || got != i || err != nil {
				t.Fatalf("round %d: Put %d of %d was acknowledged and is gone: %v", round, i, acknowledged, err)
			}
		}
		if latest, _, _ := numbers.Get("latest"); latest < acknowledged {
			t.Errorf("what waited did not go with the Put: %d, want %d", latest, acknowledged)
		}
		must.Succeed(t, db.Close())
		next = max(next, acknowledged)
	}
	t.Logf("%d Puts in the longest round", next+1)
}

func TestLockedNamesTheOtherProcess(t *testing.T) {
	path := dbPath(t)
	cmd, lines := child(t, "hold", path)
	if !lines.Scan() {
		t.Fatal("the child did not open the file")
	}
	start := time.Now()
	_, err := Open(path, Options{Timeout: 200 * time.Millisecond})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("gave up only after %v", took)
	}
	comm := filepath.Base(os.Args[0])
	who := fmt.Sprintf("process %d (%s)", cmd.Process.Pid, comm[:min(len(comm), 15)])
	if !traceable(path) {
		who = "another process"
	}
	want := path + " is in use by " + who + "; stop it, or talk to it with the perch commands"
	if !errors.Is(err, ErrLocked) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	must.Succeed(t, cmd.Process.Kill())
	_ = cmd.Wait()
	open(t, path, Options{})
}

// traceable reports whether /proc/locks shows files of the file system of path with the device number that stat returns.
// Layered file systems, such as btrfs and the overlay of a container, show another number.
func traceable(path string) bool {
	var fs syscall.Statfs_t
	const ext4, tmpfs, xfs = 0xef53, 0x01021994, 0x58465342
	return syscall.Statfs(path, &fs) == nil && slices.Contains([]int64{ext4, tmpfs, xfs}, int64(fs.Type))
}

func TestLockedByThisProcess(t *testing.T) {
	path := dbPath(t)
	open(t, path, Options{})
	_, err := Open(path, Options{Timeout: time.Millisecond})
	if !errors.Is(err, ErrLocked) || traceable(path) != strings.Contains(err.Error(), "this very process") {
		t.Errorf("got %v", err)
	}
}

func TestFindHolder(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF
2: FLOCK  ADVISORY  WRITE 0 fe:00:77 0 EOF
3: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF
4: FLOCK
4: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF
5: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF
6: FLOCK  ADVISORY  WRITE 15 103:12345:78 0 EOF
`
	for _, c := range []struct {
		dev, inode uint64
		want       int
	}{
		{0xfe00, 77, 14},
		{0xfe01, 77, 12},
		{0xfe00, 78, 0},
		{0x12310345, 78, 15}, // the minor number's upper bits are above the major number; see makedev(3)
	} {
		if got := findHolder(strings.NewReader(locks), c.dev, c.inode); got != c.want {
			t.Errorf("findHolder(%#x, %d) = %d, want %d", c.dev, c.inode, got, c.want)
		}
	}
}

// TestFirstStartOfSeveralAtOnce checks that of several processes that start for the first time at the same moment only one
// gets the database, and the others fail with ErrLocked. If each created a file, records would be lost.
func TestFirstStartOfSeveralAtOnce(t *testing.T) {
	path := dbPath(t)
	const n = 4
	answers := make(chan string, n)
	for range n {
		_, lines := child(t, "open", path)
		go func() {
			lines.Scan()
			answers <- lines.Text()
		}()
	}
	must.Succeed(t, os.WriteFile(path+".go", nil, 0o600))
	got := map[string]int{}
	for range n {
		got[strings.Fields(<-answers + " ended")[0]]++
	}
	if got["got"] != 1 || got["locked"] != n-1 {
		t.Errorf("of %d processes: %v", n, got)
	}
}
