package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/gateway/broker"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/remote/supervisor/supervisortest"
	"perch/socket"
	"perch/waittest"
)

// app runs the program as the Supervisor does. options are those of Home Assistant's app; app adds a free
// address for the ingress, and returns it.
func app(t *testing.T, s *supervisortest.Supervisor, data string, options map[string]any) (p *process, ingress string) {
	t.Helper()
	ingress = appliancetest.FreeAddress(t)
	options["web"] = map[string]any{"ingress": []string{"127.0.0.1"}, "ingress_listen": ingress}
	text, err := json.MarshalIndent(options, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "options.json"), text, 0o600)
	}
	must.Succeed(t, err)
	p = begin(t, perchBinary(t), data, nil, append(s.Environ(), "PERCH_MDNS_ENABLED=false")...)
	p.up()
	return p, ingress
}

// partOf is the condition of one of the program's parts.
type partOf struct {
	Name, Note string
	OK         bool
}

// eventually waits until is returns true for the condition of the part called name.
func (p *process) eventually(name string, is func(partOf) bool) {
	p.t.Helper()
	var last partOf
	if !waittest.Until(time.Minute, func() bool {
		var ready struct{ Parts []partOf }
		must.Succeed(p.t, p.ask(p.t.Context(), http.MethodGet, "/api/v1/status", nil, &ready))
		i := slices.IndexFunc(ready.Parts, func(one partOf) bool { return one.Name == name })
		if i < 0 {
			p.t.Fatalf("there is no part %q in %+v", name, ready.Parts)
		}
		last = ready.Parts[i]
		return is(last)
	}) {
		p.t.Fatalf("%q stays %+v\n%s", name, last, &p.log)
	}
}

// core simulates the Home Assistant behind the Supervisor: its conversation API over REST and WebSocket, and
// its list of users.
func core(t *testing.T, s *supervisortest.Supervisor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/conversation/process" {
			_, _ = io.WriteString(w, `{"response":{"speech":{"plain":{"speech":"By REST."}},"response_type":"action_done","data":{}},"conversation_id":"1"}`)
			return
		}
		if r.URL.Path != "/api/websocket" {
			http.NotFound(w, r)
			return
		}
		c, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 20})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Drop()
		say := func(format string, args ...any) { _ = c.SendText(fmt.Appendf(nil, format, args...)) } // fails if the client has disconnected
		say(`{"type":"auth_required","ha_version":"2026.11.0"}`)
		for {
			_, data, err := c.Receive()
			var m struct {
				ID    int
				Type  string
				Token string `json:"access_token"`
			}
			if err != nil || json.Unmarshal(data, &m) != nil {
				return
			}
			switch {
			case m.Type == "auth" && m.Token != supervisortest.Token:
				say(`{"type":"auth_invalid","message":"Invalid access token or password"}`)
			case m.Type == "auth":
				say(`{"type":"auth_ok","ha_version":"2026.11.0"}`)
			case m.Type == "ping":
				say(`{"id":%d,"type":"pong"}`, m.ID)
			case m.Type == "config/auth/list":
				_ = c.SendText(s.AuthList(m.ID))
			case m.Type == "assist_pipeline/run":
				say(`{"id":%d,"type":"result","success":true,"result":null}`, m.ID)
				for _, e := range []string{
					`"run-start","data":{"pipeline":"p","language":"en","runner_data":{"stt_binary_handler_id":null,"timeout":300}}`,
					`"intent-end","data":{"intent_output":{"response":{"speech":{"plain":{"speech":"By WebSocket."}},"response_type":"action_done",` +
						`"data":{}},"conversation_id":"1"}}`, `"run-end","data":null`} {
					say(`{"id":%d,"type":"event","event":{"type":%s}}`, m.ID, e)
				}
			default:
				say(`{"id":%d,"type":"result","success":true,"result":{}}`, m.ID)
			}
		}
	})
}

// TestAnAppOfHomeAssistant: a program that the Supervisor has started needs no configuration. If Home
// Assistant has no broker, the program announces its own to Home Assistant. It uses Home Assistant's
// conversation agent, and serves its page to Home Assistant. When Home Assistant has a broker, the program
// uses this broker and withdraws the announcements.
func TestAnAppOfHomeAssistant(t *testing.T) {
	t.Parallel()
	s := supervisortest.New(t)
	s.Core = core(t, s)
	s.SetAccounts(supervisortest.Account{ID: "1f", Name: "ada", Groups: []string{supervisortest.Administrators}})
	data := t.TempDir()
	mqtt := appliancetest.FreeAddress(t)
	p, ingress := app(t, s, data, map[string]any{
		"persona": map[string]any{"name": "Bo"},
		"brains":  []any{map[string]any{"kind": "assist"}, map[string]any{"kind": "assist", "rest": true}},
		"mqtt":    map[string]any{"listen": mqtt},
		"wyoming": map[string]any{"listen": "127.0.0.1:0"},
	})
	for part, want := range map[string]string{"brain+assist": "By WebSocket.", "brain+assist+2": "By REST."} {
		var tried struct{ Text string }
		if err := p.ask(t.Context(), http.MethodPost, "/api/v1/engines/try?part="+part, map[string]any{"text": "hello"}, &tried); err != nil {
			t.Error(err)
		}
		if tried.Text != want {
			t.Errorf("%s: %+v", part, tried)
		}
	}
	p.eventually("home assistant", func(one partOf) bool { return strings.HasSuffix(one.Note, "knows its services mqtt and wyoming") })
	password := must.Value(os.ReadFile(filepath.Join(data, "mqtt-password")))(t)
	told := s.Announced()
	host, port, _ := net.SplitHostPort(mqtt)
	if m := told["mqtt"]; m["host"] != host || fmt.Sprint(m["port"]) != port || m["username"] != "perch" ||
		m["password"] != strings.TrimSpace(string(password)) || m["ssl"] != false {
		t.Errorf("Home Assistant is told of the broker %v", m)
	}
	if uri, _ := told["wyoming"]["uri"].(string); !strings.HasPrefix(uri, "tcp://127.0.0.1:") {
		t.Errorf("Home Assistant is told of %v", told["wyoming"])
	}
	p.seesIngress(t, ingress)
	p.stop()
	if len(s.Deleted()) > 0 {
		t.Errorf("a stop has taken back %v, and with it what its owner has set up", s.Deleted())
	}
	if log := p.log.String(); strings.Contains(log, supervisortest.Token) || !strings.Contains(log, `name="Ada Lovelace"`) {
		t.Errorf("the log does not say who came, or has the token\n%s", log)
	}

	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- broker.Run(ctx, l, broker.Options{User: "addons", Password: "of mosquitto", Base: "perch", ClientPrefix: "nobody",
			Log: slog.New(slog.DiscardHandler)})
	}()
	_, number, _ := net.SplitHostPort(l.Addr().String())
	s.Offer(map[string]any{"host": "127.0.0.1", "port": number, "ssl": false, "username": "addons", "password": "of mosquitto", "app": "mosquitto"})
	p, _ = app(t, s, data, map[string]any{})
	p.eventually("mqtt", func(one partOf) bool {
		return one.OK && one.Note == "publishes to the broker at mqtt://127.0.0.1:"+number
	})
	p.eventually("home assistant", func(partOf) bool { return len(s.Announced()) == 0 })
	p.stop()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// seesIngress requests the page through Home Assistant's ingress, as a browser does, and checks that requests
// of other pages, machines and users are refused.
func (p *process) seesIngress(t *testing.T, at string) {
	t.Helper()
	ha := httptest.NewServer(supervisortest.Ingress{App: at, User: supervisortest.User{ID: "1f", Name: "ada", DisplayName: "Ada Lovelace"},
		Cookie: "session"})
	defer ha.Close()
	get := func(method, url, body string, header ...string) (int, string) {
		t.Helper()
		answer, text := httpservertest.Ask(t, method, url, body, header...)
		return answer.StatusCode, text
	}
	below := ha.URL + supervisortest.IngressPath
	in := []string{"Cookie", "ingress_session=session", "Origin", ha.URL, "X-Perch-Page", "1", "Sec-Fetch-Site", "same-origin"}
	for path, want := range map[string]string{
		"/": `<base href="` + supervisortest.IngressPath + `/">`, "/session": `"how":"ingress","in":true`, "/api/v1/status": `"version"`,
	} {
		if status, text := get(http.MethodGet, below+path, "", in...); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.300s", path, status, text)
		}
	}
	if status, _ := get(http.MethodGet, below+"/", ""); status != http.StatusUnauthorized {
		t.Errorf("Home Assistant lets in anybody: %d", status)
	}
	// Browsers send Home Assistant's cookie also for pages from another port of its machine.
	other := "http://127.0.0.1:8123"
	for name, header := range map[string][]string{
		"a tag":          {"Cookie", "ingress_session=session"},
		"a form":         {"Cookie", "ingress_session=session", "Origin", other},
		"a script":       {"Cookie", "ingress_session=session", "Origin", other, "X-Perch-Page", "1"},
		"a tag over TLS": {"Cookie", "ingress_session=session", "Sec-Fetch-Site", "same-site"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status, text := get(method, below+"/api/v1/notifications", `{"text":"Hello"}`, header...); status != http.StatusForbidden ||
				!strings.Contains(text, `"other_page"`) {
				t.Errorf("%s of another page sends %s: %d %s", name, method, status, text)
			}
		}
	}
	dial := func(origin string) (*socket.Conn, error) {
		return socket.Dial(t.Context(), "ws"+strings.TrimPrefix(below, "http")+"/v1/vtuber/ws", socket.Options{MaxMessage: 1 << 20,
			Header: http.Header{"Cookie": {"ingress_session=session"}, "Origin": {origin}}})
	}
	if ws, err := dial(other); err == nil {
		ws.Drop()
		t.Error("another page has opened a WebSocket")
	}
	ws := must.Value(dial(ha.URL))(t)
	if err := ws.SendText([]byte(`{"type":"subscribe","states":"all"}`)); err != nil {
		t.Error(err)
	}
	if status, text := get(http.MethodPost, below+"/api/v1/notifications", `{"text":"Hello"}`, in...); status != http.StatusAccepted {
		t.Errorf("a notification: %d %s", status, text)
	}
	if _, data, err := ws.Receive(); err != nil || !json.Valid(data) {
		t.Errorf("the skin's socket says %q, %v", data, err)
	}
	ws.Drop()

	// Other clients are refused, even if they send the headers of the proxy.
	claims := append([]string{"X-Ingress-Path", supervisortest.IngressPath, "X-Remote-User-Id", "1f", "X-Forwarded-For", "127.0.0.1"}, in...)
	if status, text := get(http.MethodGet, "http://"+at+"/api/v1/status", ""); status != http.StatusForbidden {
		t.Errorf("the proxy's address without its header: %d %s", status, text)
	}
	if status, text := get(http.MethodGet, p.url+"/api/v1/status", "", claims[:6]...); status != http.StatusUnauthorized {
		t.Errorf("the header at an address in listen: %d %s", status, text)
	}
	elsewhere := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
	for _, path := range []string{"/", "/session", "/api/v1/status", "/perch-card.js", "/xiaozhi/ota/", "/health"} {
		r := must.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, nil))(t)
		for i := 0; i < len(claims); i += 2 {
			r.Header.Set(claims[i], claims[i+1])
		}
		answer := must.Value(elsewhere.Do(r))(t)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("another machine gets %d for %s at the ingress", answer.StatusCode, path)
		}
	}
}

// TestOnlyAdministratorsComeThroughIngress: Home Assistant opens an ingress session for every user who is logged
// in, even if panel_admin hides the page. Perch refuses users who are not administrators.
func TestOnlyAdministratorsComeThroughIngress(t *testing.T) {
	t.Parallel()
	s := supervisortest.New(t)
	s.Core = s.Home()
	s.SetAccounts(supervisortest.Account{ID: "0a", Name: "olga", Owner: true}, supervisortest.Account{ID: "1f", Name: "ada",
		Groups: []string{supervisortest.OrdinaryUsers, supervisortest.Administrators}}, supervisortest.Account{ID: "2b", Name: "bob",
		Groups: []string{supervisortest.OrdinaryUsers}}, supervisortest.Account{ID: "3e", Name: "eve", Inactive: true,
		Groups: []string{supervisortest.Administrators}})
	p, at := app(t, s, t.TempDir(), map[string]any{"mqtt": map[string]any{"broker": "none"}})
	defer p.stop()
	as := func(id string) (ask func(method, path string, header ...string) (int, string)) {
		ha := httptest.NewServer(supervisortest.Ingress{App: at, User: supervisortest.User{ID: id, Name: id}})
		t.Cleanup(ha.Close)
		return func(method, path string, header ...string) (int, string) {
			answer, text := httpservertest.Ask(t, method, ha.URL+supervisortest.IngressPath+path, `{}`,
				append(header, "Origin", ha.URL, "X-Perch-Page", "1")...)
			return answer.StatusCode, text
		}
	}
	for _, id := range []string{"0a", "1f"} {
		if status, text := as(id)(http.MethodGet, "/api/v1/status"); status != http.StatusOK {
			t.Errorf("the administrator %s: %d %s", id, status, text)
		}
	}
	if asked := s.AuthListed(); asked != 1 {
		t.Errorf("Home Assistant was asked %d times for its users", asked)
	}
	bob := as("2b")
	if status, text := bob(http.MethodPut, "/api/v1/config/name"); status != http.StatusForbidden {
		t.Fatalf("somebody who is no administrator changes the configuration: %d %.200s", status, text)
	}
	for _, routes := range routeLocks {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			if status, text := bob(method, path, "X-Remote-User-Id", "1f"); status != http.StatusForbidden ||
				method != http.MethodHead && !strings.Contains(text, `"not_administrator"`) {
				t.Errorf("%s of somebody who is no administrator: %d %.200s", route, status, text)
			}
		}
	}
	status, text := bob(http.MethodGet, "/", "Accept", "text/html,application/xhtml+xml")
	if status != http.StatusForbidden || !strings.Contains(text, "<h1>Perch is for administrators</h1>") || strings.Contains(text, "<script") {
		t.Errorf("he sees %d %s", status, text)
	}
	for id, code := range map[string]string{"3e": "not_administrator", "404": "not_administrator", "": "no_user"} {
		if status, text := as(id)(http.MethodGet, "/api/v1/status"); status != http.StatusForbidden || !strings.Contains(text, `"`+code+`"`) {
			t.Errorf("user %q: %d %s", id, status, text)
		}
	}
	if log := p.log.String(); strings.Contains(log, supervisortest.Token) || strings.Contains(log, `name=2b`) {
		t.Errorf("the log has a token, or names an owner who is none\n%s", log)
	}
}

// TestAnAppWithABadSupervisor: if the Supervisor fails, the app starts nevertheless, reports the failure, and
// tries again.
func TestAnAppWithABadSupervisor(t *testing.T) {
	t.Parallel()
	s := supervisortest.New(t)
	s.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	p, _ := app(t, s, t.TempDir(), map[string]any{"wyoming": map[string]any{"listen": "127.0.0.1:0"},
		"mqtt": map[string]any{"listen": appliancetest.FreeAddress(t)}})
	for name, want := range map[string]string{
		"mqtt": "the MQTT broker of Home Assistant could not be found: ", "home assistant": "has failed (HTTP 500",
	} {
		p.eventually(name, func(one partOf) bool { return !one.OK && strings.Contains(one.Note, want) })
	}
	s.Answer(supervisortest.Endless)
	p.eventually("mqtt", func(one partOf) bool { return strings.Contains(one.Note, "an answer that is too long") })
	s.Answer(nil)
	p.eventually("mqtt", func(one partOf) bool { return one.OK && strings.HasPrefix(one.Note, "is the broker itself") })
	p.eventually("home assistant", func(one partOf) bool { return strings.Contains(one.Note, "knows its services mqtt and wyoming") })
	p.stop()
}

// TestOptionsOfTheApp: the options of the app are keys of the configuration, and their faults name the options.
func TestOptionsOfTheApp(t *testing.T) {
	data := t.TempDir()
	t.Setenv("SUPERVISOR_TOKEN", supervisortest.Token)
	t.Setenv("STATE_DIRECTORY", data)
	file := appliancetest.WriteConfig(t, "name: attic\nbrains:\n  - {kind: openai, url: \"http://h:1/v1\", model: m}\n  - {kind: reflex}\n")
	check := func(options string, code int, says ...string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(filepath.Join(data, "options.json"), []byte(options), 0o600))
		bare(t, "check-config "+file, code, says...)
	}
	check(`{}`, exitDone)
	check(`{"brains": [{"kind": "assist"}], "mqtt": {}, "robots": {"idle": "5m"}}`, exitDone)
	check("{\n \"mqtt\": {\"brokr\": \"x\"}}", exitUsage, "options.json:2: mqtt.brokr: there is no such key")
	check(`{"robots": {"framing": 9}}`, exitUsage, "option robots.framing: the binary framings are")
	check(`{"brains": [{"kind": "reflex", "model": "m"}]}`, exitUsage, "option brains.0.model: reflex has no such key")
	check(`{"log": "debug"}`, exitUsage, "options.json:1: log: ")
	check(`nonsense: [`, exitUsage, "options.json")
	must.Succeed(t, os.Unsetenv("SUPERVISOR_TOKEN"))
	check(`{"brokr": 1}`, exitDone) // without a Supervisor the file is not read
	bare(t, "check-config "+appliancetest.WriteConfig(t, "mqtt: {broker: supervisor}"), exitUsage, ":1: mqtt.broker: there is no Supervisor, because")
}

// TestABackupOfTheApp: Home Assistant runs a command in the app's config.yaml that writes a backup, then copies
// the data directory without the database. When it restores this copy, the program restores the backup.
func TestABackupOfTheApp(t *testing.T) {
	t.Parallel()
	s := supervisortest.New(t)
	data, back := t.TempDir(), t.TempDir()
	id := func(p *process) string {
		t.Helper()
		var status struct{ ID string }
		if err := p.ask(t.Context(), http.MethodGet, "/api/v1/status", nil, &status); err != nil || status.ID == "" {
			t.Fatalf("%+v, %v", status, err)
		}
		return status.ID
	}
	without := map[string]any{"mqtt": map[string]any{"broker": "none"}}
	p, _ := app(t, s, data, without)
	was := id(p)
	bare(t, "backup --force --data "+data+" "+filepath.Join(data, "app-backup.tar"), exitDone)
	for _, name := range []string{"admin-token", "token-key", "options.json", "app-backup.tar"} {
		text, err := os.ReadFile(filepath.Join(data, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(back, name), text, 0o600)
		}
		must.Succeed(t, err)
	}
	p.stop()
	for range 2 { // only the first start restores the backup
		p, _ = app(t, s, back, without)
		if is := id(p); is != was {
			t.Errorf("what was restored is the appliance %s, not %s", is, was)
		}
		p.stop()
	}
	if _, err := os.Stat(filepath.Join(back, "app-backup.tar")); !os.IsNotExist(err) {
		t.Errorf("the copy is still there: %v", err)
	}
}

// appFolder is the folder with the sources of the Home Assistant app.
const appFolder = "../../../packaging/homeassistant"

// checkedApp checks an app by the rules of the Supervisor, and returns the options that the Supervisor would
// write for the program.
func checkedApp(t *testing.T, folder, options string) (made string, err error) {
	t.Helper()
	const python = "/usr/bin/python3" // Debian's Python, which can import Debian's packages
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import voluptuous, yaml").CombinedOutput(); err != nil {
		t.Skipf("packaging/deps.sh app installs what the app is tested with: %s", out)
	}
	c := exec.CommandContext(t.Context(), python, filepath.Join(appFolder, "check.py"), folder, "--options")
	c.Stdin = strings.NewReader(options)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &errs)
	}
	return string(out), err
}

// TestTheAppsOptionsAreKeys: each option in the app's config.yaml is a key of the configuration, and the program
// can read the options that the Supervisor writes.
func TestTheAppsOptionsAreKeys(t *testing.T) {
	if made, err := checkedApp(t, appFolder, "{}"); err != nil || strings.Contains(made, "null") {
		t.Fatalf("%v %s", err, made)
	}
	certificate, key := filepath.Join(t.TempDir(), "c.pem"), filepath.Join(t.TempDir(), "k.pem")
	all := `{"name": "attic", "language": "en", "timezone": "Europe/Berlin", "adoption": "code", "mood": "off", "public_url": "http://192.0.2.1:8003",
		"allowed_hosts": ["perch.example"], "allowed_origins": ["https://panel.example"], "persona": {"name": "Bo", "file": ""},
		"robots": {"idle": "5m", "greeting": false, "transport": "mqtt", "away_after": "12h", "share_transcripts": true},
		"wyoming": {"listen": ":10700"}, "skins": {"key": "0123456789"}, "bridge": {"key": "0123456789"},
		"mqtt": {"broker": "embedded", "listen": ":1883", "user": "u", "password": "p", "base_topic": "b", "discovery_prefix": "d"},
		"tls": {"listen": [], "certificate": "` + certificate + `", "key": "` + key + `"}, "log": {"level": "debug"}}`
	made := must.Value(checkedApp(t, appFolder, all))(t)
	var given, kept any
	must.Succeed(t, errors.Join(json.Unmarshal([]byte(all), &given), json.Unmarshal([]byte(made), &kept)))
	if !reflect.DeepEqual(given, kept) {
		t.Errorf("the Supervisor makes %s\nof %s", made, all)
	}
	text := must.Value(os.ReadFile(filepath.Join(appFolder, "perch/config.yaml")))(t)
	var app struct {
		Schema      map[string]any
		IngressPort int    `yaml:"ingress_port"`
		BackupPre   string `yaml:"backup_pre"`
	}
	must.Succeed(t, yaml.Unmarshal(text, &app))
	if got, want := optionKeys(app.Schema, ""), optionKeys(given.(map[string]any), ""); !slices.Equal(got, want) {
		t.Errorf("the options are %q, and %q are tested", got, want)
	}
	file := filepath.Join(t.TempDir(), "options.json")
	must.Succeed(t, os.WriteFile(file, []byte(made), 0o600))
	from := config.Source{Options: file, Environ: []string{"SUPERVISOR_TOKEN=x"}}
	c := must.Value(from.Load())(t)
	if c.Name != "attic" || c.Robots.Greeting || !c.Robots.ShareTranscripts || c.MQTT.Password != "p" || c.Log.Level != "debug" {
		t.Errorf("%+v", c)
	}
	if _, port, _ := net.SplitHostPort(c.Web.IngressListen); port != fmt.Sprint(app.IngressPort) {
		t.Errorf("the ingress is at %s, and Home Assistant comes to port %d", c.Web.IngressListen, app.IngressPort)
	}
	if app.BackupPre != "perch backup --force /data/app-backup.tar" { // the command that TestABackupOfTheApp runs
		t.Errorf("before a backup %q is run", app.BackupPre)
	}
	for _, wrong := range []string{`{"adoption": "maybe"}`, `{"robots": {"greeting": "perhaps"}}`, `{"mqtt": 7}`, `{"name": "My House"}`} {
		if made, err := checkedApp(t, appFolder, wrong); err == nil {
			t.Errorf("%s is taken: %s", wrong, made)
		}
	}
}

// optionKeys returns the sorted paths of the keys in a schema or in options. at is the path of the section, with a
// dot.
func optionKeys(section map[string]any, at string) (all []string) {
	for key, v := range section {
		if below, is := v.(map[string]any); is {
			all = append(all, optionKeys(below, at+key+".")...)
		} else {
			all = append(all, at+key)
		}
	}
	slices.Sort(all)
	return all
}

// TestMakeApp: make app builds a valid app whose version is also a valid tag of a container image, whose pictures
// are those of draw.py, and whose archive is reproducible.
func TestMakeApp(t *testing.T) {
	dist, again := t.TempDir(), t.TempDir()
	build := func(out string, env ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), filepath.Join(appFolder, "app.sh"), out)
		c.Env = append(os.Environ(), append([]string{"PERCH_HOMEPAGE=https://perch.example/perch", "IMAGE=registry.example/home/perch"}, env...)...)
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, said)
		}
		return string(said)
	}
	build(dist, "PERCH_VERSION=1.4.0+3.gabc1234")
	folder := filepath.Join(dist, "perch-home-assistant")
	if _, err := checkedApp(t, folder, "{}"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"perch/config.yaml": "version: \"1.4.0-3.gabc1234\"\n", "perch/CHANGELOG.md": "# Changes", "repository.yaml": "maintainer: ",
	} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
	text := must.Value(os.ReadFile(filepath.Join(folder, "perch/config.yaml")))(t)
	for _, want := range []string{"\nimage: registry.example/home/perch\n", "\nurl: \"https://perch.example/perch\"\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("config.yaml has no %q: %s", want, text)
		}
	}
	build(again) // the version comes from the repository, as for the packages and the container's tag
	version := regexp.MustCompile(`(?m)^version: "(0-\d{14}\.g[0-9a-f]+|[\d.]+(-\d+\.g[0-9a-f]+)?)"$`)
	if text := must.Value(os.ReadFile(filepath.Join(again, "perch-home-assistant/perch/config.yaml")))(t); !version.Match(text) {
		t.Errorf("config.yaml has another version than the container: %s", text)
	}
	build(again, "PERCH_VERSION=1.4.0+3.gabc1234")
	packed := func(dir string) []byte {
		t.Helper()
		text := must.Value(os.ReadFile(filepath.Join(dir, "perch-home-assistant_1.4.0-3.gabc1234.tar.gz")))(t)
		return text
	}
	if !bytes.Equal(packed(dist), packed(again)) {
		t.Error("two archives of the same differ")
	}
	if out, err := exec.CommandContext(t.Context(), "python3", filepath.Join(appFolder, "draw.py"), again).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for name, size := range map[string]image.Point{"icon.png": {X: 128, Y: 128}, "logo.png": {X: 250, Y: 100}} {
		is, drawn := picture(t, filepath.Join(folder, "perch", name)), picture(t, filepath.Join(again, name))
		if is.Bounds().Size() != size || !reflect.DeepEqual(is, drawn) {
			t.Errorf("%s is %v, and not what draw.py draws", name, is.Bounds())
		}
	}
}

func picture(t *testing.T, path string) image.Image {
	t.Helper()
	f := must.Value(os.Open(path))(t)
	defer f.Close()
	drawn := must.Value(png.Decode(f))(t)
	return drawn
}
