package web

import "time"

// Link logs in another device, once.
type Link struct {
	URLs  []string  `json:"urls"` // the last is for this machine
	Until time.Time `json:"until"`
	QR    []string  `json:"qr"` // of the first URL: a row of 0 and 1 for each line, 1 is dark
}

// link makes a one-time link. Its code is behind a #, so that it is sent to no
// server and written into no log.
func (s *Server) link() (Link, error) {
	code, until := s.newLink()
	l := Link{Until: until.UTC().Truncate(time.Second)}
	for _, address := range append(s.o.Addresses(), s.o.Own()) {
		l.URLs = append(l.URLs, address+"/#/in/"+code)
	}
	var err error
	l.QR, err = qrCode(l.URLs[0])
	return l, err
}

// address returns the appliance's URLs for browsers and for robots.
func (s *Server) address() map[string][]string {
	all := map[string][]string{"url": {}, "ota": {}}
	for _, address := range s.o.Addresses() {
		all["url"] = append(all["url"], address+"/")
		all["ota"] = append(all["ota"], address+"/xiaozhi/ota/")
	}
	return all
}
