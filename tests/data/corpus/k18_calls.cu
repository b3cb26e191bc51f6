// Everything that makes nvcc emit the rarer PTX: calls, tables, packed addresses, printf, switch.
#include <cstdio>
#include <cassert>
struct S { int a; float b; double c; };
__constant__ float cf[4] = {1.5f, -2.f, 3.f};
__constant__ int c2[2][3] = {{1,2},{4}};
__device__ double gd = 3.25;
__device__ S gs = {1, 2.5f, 3.75};
__device__ int* gp = nullptr;
__device__ int garr[4];
__device__ int* gpa = &garr[2];
struct __attribute__((packed)) P { char c; int* p; };
__device__ P packed = {1, &garr[1]};
__device__ float fa(float x) { return x + 1; }
__device__ __noinline__ float fb(float x, S s) { return x * s.b; }
typedef float (*fp)(float);
__device__ __noinline__ float g1(float x){return x*2;}
__device__ __noinline__ float g2(float x){return x*3;}
__device__ fp table[2] = {g1, g2};
__device__ __managed__ int man = 5;
__device__ const char* names[] = {"a", "bcd"};
__global__ void __launch_bounds__(128, 2) k(float* x, int n, S s) {
  fp f = table[n & 1];
  assert(n > 0);
  switch (n) { case 0: x[0]=1; break; case 1: x[1]=cf[n]; break; case 2: x[2]=3; x[7]=c2[1][n]; break; case 3: x[9]=6; break; case 4: x[1]=x[2]; break; case 5: x[3]=x[9]*2; break; case 6: x[0]=f(x[1]); break; case 7: x[3] = fb(x[1], s); break; default: x[5] = gd; }
  printf("%d %s\n", n, names[n&1]);
  packed.p[n] = *gpa; gs.a = man;
  x[3] += f(x[4]);
}
template<int N> __device__ int fact(int n) { return n <= 1 ? 1 : n * fact<N>(n-1); }
extern "C" __device__ int rec(int n) { return n <= 1 ? 1 : rec(n-1) + rec(n-2); }
__global__ void k2(int* o) { extern __shared__ double sh[]; int a[8]; for (int i=0;i<8;i++) a[i]=o[i]; sh[threadIdx.x]=a[o[9]]; __syncthreads(); *o = rec(*o)+ (int)sh[1]; 
 int* p = (int*)malloc(16); p[0]=1; *o += p[o[3]]; free(p); }
