package web

import "time"

// Link is a link that logs in another device, once.
type Link struct {
	URLs  []string  `json:"urls"`  // alternative URLs; the last one works only on this machine
	Code  string    `json:"code"`  // six digits to type on the page instead of opening a URL; valid for codeLifetime
	Until time.Time `json:"until"` // when the link expires
	QR    []string  `json:"qr"`    // QR code of the first URL, as qrCode returns it
}

// makeLink makes a one-time link. The code is in the fragment of the URL, which browsers neither send to a server nor
// write to a log.
func (s *Server) makeLink() (Link, error) {
	typed := sixDigits()
	code, until := s.newLink(typed)
	l := Link{Code: typed, Until: until.UTC().Truncate(time.Second)}
	for _, address := range append(s.o.Addresses(), s.o.LocalURL()) {
		l.URLs = append(l.URLs, address+"/#/in/"+code)
	}
	var err error
	l.QR, err = qrCode(l.URLs[0])
	return l, err
}

// LocalLink makes a link that logs in a browser on this machine once, within ten minutes. It has no digits to type, which
// a stranger on the network could guess.
func (s *Server) LocalLink() string {
	code, _ := s.newLink("")
	return s.o.LocalURL() + "/#/in/" + code
}

// urls returns the appliance's URLs for browsers (key "url") and for robots (key "ota").
func (s *Server) urls() map[string][]string {
	urls := map[string][]string{"url": {}, "ota": {}}
	for _, address := range s.o.Addresses() {
		urls["url"] = append(urls["url"], address+"/")
		urls["ota"] = append(urls["ota"], address+"/xiaozhi/ota/")
	}
	return urls
}
