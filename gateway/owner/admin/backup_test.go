package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/must"
)

// backups is a fake archives.
type backups struct {
	err    error    // returned by Backup and Restore
	broken error    // returned by Write in the middle of a backup
	open   int      // backups that were made and not closed
	taken  []string // the restored backups
}

func (s *backups) Backup(context.Context) (admin.Backup, error) {
	if s.err != nil {
		return admin.Backup{}, s.err
	}
	s.open++
	return admin.Backup{Name: "perch-1.tar", Size: 8, Close: func() { s.open-- }, Write: func(w io.Writer) error {
		text := "a backup"
		if s.broken != nil {
			text = "a ba"
		}
		_, err := io.WriteString(w, text)
		return errors.Join(err, s.broken)
	}}, nil
}

func (s *backups) Restore(_ context.Context, body io.Reader, restart bool) (admin.Restored, error) {
	text, err := io.ReadAll(body)
	if err != nil || s.err != nil {
		return admin.Restored{}, errors.Join(err, s.err)
	}
	s.taken = append(s.taken, string(text))
	return admin.Restored{Perch: "1.0", Files: 2, Restarting: restart, Next: "restart to apply"}, nil
}

func TestBackup(t *testing.T) {
	s := &backups{}
	h := newAppliance(t, func(o *admin.Options) { o.Archives = s })
	w := httptest.NewRecorder()
	h.engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/backup", nil))
	for name, want := range map[string]string{"Content-Type": "application/x-tar", "Content-Length": "8", "Cache-Control": "no-store",
		"Content-Disposition": "attachment; filename=perch-1.tar", "X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if w.Code != 200 || w.Body.String() != "a backup" || s.open != 0 {
		t.Errorf("%d %s, %d open", w.Code, w.Body, s.open)
	}
	s.err = &httpserver.Fault{Word: "busy", Sentence: "another is under way", HTTP: http.StatusConflict}
	h.wants(t, http.MethodGet, "/api/v1/backup", "", 409, `"busy"`)
}

// TestBrokenBackupIsCutOff checks that a client does not take an incomplete backup for a complete one.
func TestBrokenBackupIsCutOff(t *testing.T) {
	s := &backups{broken: errors.New("the disk is gone")}
	server := httptest.NewServer(newAppliance(t, func(o *admin.Options) { o.Archives = s }).engine)
	defer server.Close()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(server.URL + "/api/v1/backup")
	must.Succeed(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) || s.open != 0 {
		t.Errorf("%q, %v; %d open", text, err, s.open)
	}
}

func TestRestore(t *testing.T) {
	large := strings.Repeat("x", 1<<20) // far above the limit of other bodies
	for _, c := range []struct {
		query, body string
		err         error
		status      int
		answer      string
	}{
		{"", large, nil, 202, `"restarting":false`},
		{"?restart=true", "backup", nil, 202, `"restarting":true`},
		{"?restart=0", "backup", nil, 202, `"next":"restart to apply"`},
		{"?restart=soon", "backup", nil, 400, `"bad_restart"`},
		{"", "backup", &httpserver.Fault{Word: "bad_backup", Sentence: "no", HTTP: 422}, 422, `"bad_backup"`},
		{"", "backup", errors.New("secret: /dev/mmcblk0"), 500, `"internal"`},
	} {
		s := &backups{err: c.err}
		h := newAppliance(t, func(o *admin.Options) { o.Archives = s })
		status, body := h.ask(http.MethodPost, "/api/v1/restore"+c.query, c.body)
		if status != c.status || !strings.Contains(body, c.answer) || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", c.query, status, body)
		}
		if taken := strings.Join(s.taken, ""); (taken == c.body) != (status == 202) {
			t.Errorf("%s: %d bytes were taken", c.query, len(taken))
		}
	}
}
