package openclaw

import "github.com/gin-gonic/gin"

// Routes mounts the door at the root of a listener of its own, where clients look for the
// gateway. Locks that need no token stand before it.
func (s *Server) Routes(r gin.IRouter) {
	r.GET("/", func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}
