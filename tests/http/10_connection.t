# Connections that are kept, pipelined and closed; bodies in all framings.
model add

play keep-alive: many answers on one connection
get /v2/health/live
< 200
no-field Connection
get /nowhere
< 404
get /v2/health/live
< 200
open

play Connection: close is announced and done
>> GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n
< 200
field Connection: close
closed

play HTTP/1.0 closes
>> GET /v2/health/live HTTP/1.0\r\n\r\n
< 200
field Connection: close
closed

play HTTP/1.0 with keep-alive stays
>> GET /v2/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n
< 200
field Connection: keep-alive
open

play pipelined requests are answered in order
>> GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\nGET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: a\r\n\r\nGET /v2/models HTTP/1.1\r\nHost: a\r\n\r\n
< 200
json {"live": true}
< 200
json {"ready": true}
< 404
< 200
json {"models": ["add"]}
open

play a thousand pipelined requests
>* 1000 GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
>> GET /v2/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
< 200
json {"models": ["add"]}
closed

play pipelined inference
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
post /v2/models/add/infer {"id": "second", "inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
get /v2/health/live
< 200
< 200
body .*"second".*
< 200
json {"live": true}

play a good request before garbage is answered
>> GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n\x01\x02garbage\r\n\r\n
< 200
json {"live": true}
< 400
field Connection: close
closed

play bytes after Connection: close are ignored
>> GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n
< 200
closed

play empty lines before a request
>> \r\n\r\nGET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
< 200

play one byte at a time
>> G
wait 0.01
>> ET /v2/hea
wait 0.01
>> lth/live HT
wait 0.01
>> TP/1.1\r
wait 0.01
>> \nHos
wait 0.01
>> t: a\r\n\r
wait 0.01
>> \n
< 200

play a half-closed connection gets its answer
>> GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
half-close
< 200
closed

play chunked body
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Transfer-Encoding: chunked
>
>> 1\r\n{\r\n
>> a1\r\n"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}\r\n0\r\n\r\n
< 200
open

play chunked body with extensions and trailers
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Transfer-Encoding: Chunked
>
>> a2;name=value\r\n{"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}\r\n0\r\nX-Trailer: Content-Length: 7\r\n\r\n
< 200
get /v2/health/live
< 200

play Expect: 100-continue
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 162
> Expect: 100-continue
>
< 100
>> {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200
open

play Expect with the body in the same packet gets no 100
>> POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 162\r\nExpect: 100-continue\r\n\r\n{"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 200

play Expect for a request that fails gets the failure at once
> POST /v2/models/nope/infer HTTP/1.1
> Host: a
> Content-Length: 100000
> Expect: 100-continue
>
< 404
field Connection: close
closed

play an unknown expectation
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 5
> Expect: coffee
>
< 417
closed

play HEAD has the head of GET and no body
>> HEAD /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n
<HEAD 200
field Content-Length: 13
get /v2/health/live
< 200

play HEAD of an unknown path
>> HEAD /nowhere HTTP/1.1\r\nHost: a\r\n\r\n
<HEAD 404
get /v2/health/live
< 200

play the body of a refused request is skipped
post /v2/models/nope/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
< 404
get /v2/health/live
< 200

play an offer to upgrade is ignored
>> GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n
< 200

play a reset in the middle of a body harms no other client
> POST /v2/models/add/infer HTTP/1.1
> Host: a
> Content-Length: 100000
>
>> {"inputs
reset
connect
get /v2/health/live
< 200

play a reset after a request harms no other client
post /v2/models/add/infer {"inputs":[{"name":"input_0","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]},{"name":"input_1","shape":[2,3],"datatype":"FP32","data":[10,20,30,40,50,60]}]}
reset
connect
get /v2/health/live
< 200
